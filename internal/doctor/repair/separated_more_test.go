package repair

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/kv"
)

// A lost value under operands, one under a newer value, and one that is the newest: the report says what keys show.
func TestTheReportSaysWhatKeysShow(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	o := &kv.Options{SeparateFrom: 10, Merger: kv.Append(",")}
	db, err := kv.Open(dir, o)
	require.NoError(t, err)
	for _, k := range []string{"alone", "deleted", "merged", "ranged", "twice"} {
		require.NoError(t, db.Set([]byte(k), []byte("a separated value"), kv.NoSync))
	}
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Merge([]byte("merged"), []byte("operand"), kv.NoSync))
	require.NoError(t, db.Set([]byte("twice"), []byte("short"), kv.NoSync))
	require.NoError(t, db.Delete([]byte("deleted"), kv.NoSync))
	require.NoError(t, db.DeleteRange([]byte("ranged"), []byte("rangee"), kv.NoSync))
	require.NoError(t, db.DeleteRange([]byte("ranged"), []byte("rangef"), kv.NoSync))
	require.NoError(t, db.Close())
	require.NoError(t, os.Remove(filesOf(t, dir, manifest.FileBlob)[0]))
	shows := map[string]string{}
	r, err := Run(t.Context(), dir, Options{LostValue: func(v LostValue) error {
		shows[string(v.Key)] = v.Shows
		return nil
	}})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"alone": ShowsNothing, "deleted": ShowsNewer, "merged": ShowsOperands,
		"ranged": ShowsNewer, "twice": ShowsNewer}, shows)
	require.EqualValues(t, 2, *r.Lost[len(r.Lost)-1].Writes)
	db, err = kv.Open(dir, o)
	require.NoError(t, err)
	v, err := db.Get([]byte("merged"))
	require.NoError(t, err)
	require.Equal(t, "operand", string(v))
	v, err = db.Get([]byte("twice"))
	require.NoError(t, err)
	require.Equal(t, "short", string(v))
	_, err = db.Get([]byte("alone"))
	require.ErrorIs(t, err, kv.ErrNotFound)
	require.NoError(t, db.Close())
}

// The list of lost values in a report has a bound; the rest are counted, and their keys are in a range.
func TestTheListOfLostValuesIsBounded(t *testing.T) {
	scale.OneGoroutine(t, "one goroutine repairs")
	dir := filepath.Join(t.TempDir(), "store")
	db, err := kv.Open(dir, &kv.Options{SeparateFrom: 1})
	require.NoError(t, err)
	n := maxListed + 500
	for i := range n {
		require.NoError(t, db.Set(fmt.Appendf(nil, "key%05d", i), []byte("value"), kv.NoSync))
	}
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Close())
	require.NoError(t, os.Remove(filesOf(t, dir, manifest.FileBlob)[0]))
	told := 0
	r, err := Run(t.Context(), dir, Options{DryRun: true, LostValue: func(LostValue) error { told++; return nil }})
	require.NoError(t, err)
	require.Equal(t, n, told)
	require.Len(t, r.Lost, 1)
	l := &r.Lost[0]
	require.Len(t, l.Values, maxListed)
	require.EqualValues(t, 500, l.Unlisted)
	require.EqualValues(t, n, *l.Writes)
	require.True(t, l.Covers([]byte("key00000")))
	require.True(t, l.Covers(fmt.Appendf(nil, "key%05d", n-1)))
	require.False(t, l.Covers([]byte("key")))
	var text strings.Builder
	require.NoError(t, r.WriteText(&text))
	require.Contains(t, text.String(), "and 500 values more:\n    keys key10000 to key10499")
}

// Without a manifest the writes of a flush may be in a log too: a value that is lost is taken from there.
func TestALostValueIsTakenFromALogThatHasIt(t *testing.T) {
	from := filepath.Join(t.TempDir(), "open")
	db, err := kv.Open(from, &kv.Options{SeparateFrom: 1})
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("a"), []byte("value"), kv.Sync))
	log := filesOf(t, from, manifest.FileWAL)[0]
	data, err := os.ReadFile(log)
	require.NoError(t, err)
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Close())
	require.NoError(t, os.WriteFile(log, data, 0o600))
	for _, kind := range []manifest.FileKind{manifest.FileBlob, manifest.FileManifest, manifest.FileCurrent} {
		require.NoError(t, os.Remove(filesOf(t, from, kind)[0]))
	}
	r, err := Run(t.Context(), from, Options{})
	require.NoError(t, err)
	require.False(t, r.LostForSure(), "%+v", r.Lost)
	require.Equal(t, map[string]string{"a": "value"}, contents(t, from))
}

// Tables with handles that no store has written are no reason to fail: without a manifest, and with blob files that
// are whole, a repair makes a store of what can be read.
func TestHostileHandles(t *testing.T) {
	t.Parallel()
	for seed := range uint64(scale.Count(12, 40)) {
		rng := rand.New(rand.NewPCG(seed, 51))
		dir := t.TempDir()
		f, err := os.Create(filepath.Join(dir, manifest.FileName(manifest.FileBlob, 7)))
		require.NoError(t, err)
		bw := blob.NewWriter(f, blob.WriterOptions{Num: 7})
		want, handles := map[string]string{}, map[string]blob.Handle{}
		for i := range 20 {
			k, v := fmt.Sprintf("k%02d", i), bytes.Repeat([]byte{byte('a' + i)}, rng.IntN(100))
			h, err := bw.Add([]byte(k), base.SeqNum(i+1), 0, v)
			require.NoError(t, err)
			want[k], handles[k] = string(v), h
		}
		_, err = bw.Finish()
		require.NoError(t, err)
		require.NoError(t, f.Close())
		for num := range uint64(2) {
			f, err := os.Create(filepath.Join(dir, manifest.FileName(manifest.FileTable, 8+num)))
			require.NoError(t, err)
			w := sstable.NewWriter(f, nil)
			w.KnowBlobs(func(uint64) uint64 { return bw.ID() })
			for i := range 20 {
				k := fmt.Sprintf("k%02d", i)
				h := handles[k]
				switch rng.IntN(8 + int(seed%4)*40) { // few in some stores, one or none in others
				case 0:
					h.Ordinal = rng.Uint64N(100)
				case 1:
					h.Offset = 32 + rng.Int64N(5000)
				case 2:
					h.Length = 24 + rng.Int64N(1<<30)
				case 3:
					h.Size = rng.Int64N(1 << 30)
				case 4:
					h = handles[fmt.Sprintf("k%02d", rng.IntN(20))]
				case 5:
					h.File = 1 + rng.Uint64N(10)
				default:
				}
				if rng.IntN(20) == 0 {
					twice := base.MakeKey([]byte(k), base.SeqNum(i+2), base.KindSetSeparated)
					require.NoError(t, w.Add(twice, h.Append(nil)))
				}
				once := base.MakeKey([]byte(k), base.SeqNum(i+1), base.KindSetSeparated)
				require.NoError(t, w.Add(once, h.Append(nil)))
			}
			_, err = w.Finish()
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
		r, err := Run(t.Context(), dir, Options{})
		require.NoError(t, err, "seed %d", seed)
		for k, v := range contents(t, dir) {
			require.Equal(t, want[k], v, "seed %d: %+v", seed, r)
		}
	}
}
