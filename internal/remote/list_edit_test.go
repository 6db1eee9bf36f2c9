package remote

import (
	"encoding/hex"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/hostile"
)

// sampleEdit has all that an edit can have.
func sampleEdit(t testing.TB) (from, to *fileList, e listEdit) {
	t.Helper()
	from, to = sampleList(t), blobList(t)
	delete(to.files, 4)
	to.files[5] = file{author: to.files[5].author, size: 2} // another file under the number
	to.manifest = append(slices.Clip(to.manifest), " goes on"...)
	to.logStart, to.logs, to.home.Logs = 301, []uint64{9, 12, 13}, []uint64{13}
	e, ok := newListEdit(from, to)
	require.True(t, ok)
	e.chain = []uint64{7, 8, 300}
	return from, to, e
}

func TestGoldenListEdits(t *testing.T) {
	from, to, e := sampleEdit(t)
	golden.File(t, filepath.Join("testdata", "list-edit.golden"), hex.Dump(e.encode()))
	got, err := decodeListEdit(e.encode())
	require.NoError(t, err)
	require.Equal(t, e, got)
	require.NoError(t, got.apply(from))
	require.Equal(t, to, from)
}

// Each list of a random history is the one before with its edit.
func TestEditsLeadFromListToList(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	next, read := sampleList(t), sampleList(t)
	for range 500 {
		last := *next
		last.files = maps.Clone(next.files)
		for range rng.IntN(4) {
			num := 1 + rng.Uint64N(50)
			if rng.IntN(2) == 0 {
				delete(next.files, num)
			} else {
				next.files[num] = file{author: last.files[3].author, size: rng.Int64N(3), blob: rng.IntN(2) == 0}
			}
		}
		next.manifest = append(slices.Clone(next.manifest), make([]byte, rng.IntN(3))...)
		next.logStart, next.logs = rng.Uint64N(100), []uint64{1 + rng.Uint64N(100)}
		e, ok := newListEdit(&last, next)
		require.True(t, ok)
		e.chain = []uint64{1}
		got, err := decodeListEdit(e.encode())
		require.NoError(t, err)
		require.NoError(t, got.apply(read))
		require.Equal(t, next, read)
	}
	other := *next
	other.current = "another"
	_, ok := newListEdit(next, &other)
	require.False(t, ok)
	other = *next
	other.manifest = other.manifest[1:]
	_, ok = newListEdit(next, &other)
	require.False(t, ok)
}

func TestEditsOfAnotherListAreRefused(t *testing.T) {
	_, _, e := sampleEdit(t)
	for name, change := range map[string]func(*fileList){
		"a longer manifest":    func(l *fileList) { l.manifest = append(l.manifest, 0) },
		"a file that went":     func(l *fileList) { delete(l.files, 4) },
		"a file that came":     func(l *fileList) { l.files[6] = file{} },
		"an edit that is made": func(l *fileList) { require.NoError(t, e.apply(l)) },
	} {
		from, _, _ := sampleEdit(t)
		change(from)
		require.ErrorIs(t, e.apply(from), errList, name)
	}
	e.list.current = sampleList(t).current
	_, err := decodeListEdit(e.encode())
	require.ErrorIs(t, err, errList, "CURRENT")
	e.list.current, e.chain = "", nil
	_, err = decodeListEdit(e.encode())
	require.ErrorIs(t, err, errList, "no chain")
}

func requireEdit(t *testing.T, b []byte) {
	from := sampleList(t)
	listBound.Require(t, len(b)+len(from.manifest), func() {
		e, err := decodeListEdit(b)
		if err != nil {
			return
		}
		again, err := decodeListEdit(e.encode())
		require.NoError(t, err)
		require.Equal(t, e, again)
		_ = e.apply(from)
	})
}

func TestHostileListEdits(t *testing.T) {
	_, _, e := sampleEdit(t)
	for mutant := range hostile.Mutants(e.encode(), 2000) {
		requireEdit(t, mutant)
	}
}

func FuzzListEdit(f *testing.F) {
	_, _, e := sampleEdit(f)
	f.Add(e.encode())
	f.Fuzz(func(t *testing.T, b []byte) { requireEdit(t, b) })
}
