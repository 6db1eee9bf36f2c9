package filelist

import (
	"encoding/hex"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/hostile"
	"github.com/siftkv/siftkv/internal/manifest"
)

// sampleEdit has all that an edit can have.
func sampleEdit(t testing.TB) (from, to *List, e edit) {
	t.Helper()
	from, to = sampleList(t), blobList(t)
	delete(to.Files, 4)
	to.Files[5] = File{to.Files[5].WriterID, 2, manifest.FileTable} // another file under the number
	to.Manifest = append(slices.Clip(to.Manifest), " goes on"...)
	to.LogStart, to.Logs, to.Location.Logs = 301, []uint64{9, 12, 13}, []uint64{13}
	e, ok := newEdit(from, to)
	require.True(t, ok)
	e.chain = []uint64{7, 8, 300}
	return from, to, e
}

func TestGoldenListEdits(t *testing.T) {
	from, to, e := sampleEdit(t)
	golden.File(t, filepath.Join("testdata", "list-edit.golden"), hex.Dump(e.encode()))
	got, err := decodeEdit(e.encode())
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
		last.Files = maps.Clone(next.Files)
		for range rng.IntN(4) {
			num := 1 + rng.Uint64N(50)
			if rng.IntN(2) == 0 {
				delete(next.Files, num)
			} else {
				next.Files[num] = File{last.Files[3].WriterID, rng.Int64N(3), kinds[rng.IntN(len(kinds))]}
			}
		}
		next.Manifest = append(slices.Clone(next.Manifest), make([]byte, rng.IntN(3))...)
		if next.SlotFiles = nil; rng.IntN(2) == 0 {
			next.SlotFiles = map[string]string{"s": strconv.Itoa(rng.IntN(3))}
		}
		next.LogStart, next.Logs = rng.Uint64N(100), []uint64{1 + rng.Uint64N(100)}
		e, ok := newEdit(&last, next)
		require.True(t, ok)
		e.chain = []uint64{1}
		got, err := decodeEdit(e.encode())
		require.NoError(t, err)
		require.NoError(t, got.apply(read))
		require.Equal(t, next, read)
	}
	other := *next
	other.Current = "another"
	_, ok := newEdit(next, &other)
	require.False(t, ok)
	other = *next
	other.Manifest = other.Manifest[1:]
	_, ok = newEdit(next, &other)
	require.False(t, ok)
}

func TestEditsOfAnotherListAreRefused(t *testing.T) {
	_, _, e := sampleEdit(t)
	for name, change := range map[string]func(*List){
		"a longer manifest":    func(l *List) { l.Manifest = append(l.Manifest, 0) },
		"a file that went":     func(l *List) { delete(l.Files, 4) },
		"a file that came":     func(l *List) { l.Files[6] = File{} },
		"an edit that is made": func(l *List) { require.NoError(t, e.apply(l)) },
	} {
		from, _, _ := sampleEdit(t)
		change(from)
		require.ErrorIs(t, e.apply(from), ErrMalformed, name)
	}
	e.list.Current = sampleList(t).Current
	_, err := decodeEdit(e.encode())
	require.ErrorIs(t, err, ErrMalformed, "CURRENT")
	e.list.Current, e.chain = "", nil
	_, err = decodeEdit(e.encode())
	require.ErrorIs(t, err, ErrMalformed, "no chain")
}

func requireEdit(t *testing.T, b []byte) {
	from := sampleList(t)
	listBound.Require(t, len(b)+len(from.Manifest), func() {
		e, err := decodeEdit(b)
		if err != nil {
			return
		}
		again, err := decodeEdit(e.encode())
		require.NoError(t, err)
		require.Equal(t, e, again)
		_ = e.apply(from)
	})
}

// slotEdit is an edit to a list with slots.
func slotEdit(t testing.TB) (e edit) {
	e, ok := newEdit(sampleList(t), slotList(t))
	require.True(t, ok)
	e.chain = []uint64{7}
	return e
}

func TestHostileListEdits(t *testing.T) {
	_, _, e := sampleEdit(t)
	for _, e := range []edit{e, slotEdit(t)} {
		for mutant := range hostile.Mutants(e.encode(), 2000) {
			requireEdit(t, mutant)
		}
	}
}

func FuzzListEdit(f *testing.F) {
	_, _, e := sampleEdit(f)
	f.Add(e.encode())
	slots := slotEdit(f)
	f.Add(slots.encode())
	f.Fuzz(func(t *testing.T, b []byte) { requireEdit(t, b) })
}
