package advice

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/advise"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/explain"
	"github.com/siftkv/siftkv/kv/lookuptrace"
)

// cachedStore returns a store of 2,000 keys in one run, of which a program uses others as a cache: what it does not
// find it writes. The writes are in a run of their own, or in a memtable. Every key that was looked up was absent once
// and found twice.
func cachedStore(t *testing.T, o *kv.Options, flush bool) (*kv.DB, []byte) {
	t.Helper()
	db, err := kv.Open(t.TempDir(), o)
	require.NoError(t, err)
	for n := range 2000 {
		fine(t, db.Set(adviceKey(2*n), make([]byte, 100), kv.NoSync))
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	var out bytes.Buffer
	tracer, err := lookuptrace.New(&out, &lookuptrace.Options{Keys: true})
	require.NoError(t, err)
	db.TraceLookups(tracer)
	for range 3 {
		for n := range 1000 {
			key := adviceKey(2*n + 1)
			ok, err := db.Has(key)
			fine(t, err)
			if !ok {
				fine(t, db.Set(key, make([]byte, 100), kv.NoSync))
			}
		}
	}
	require.NoError(t, tracer.Close())
	if flush {
		require.NoError(t, db.Flush(t.Context()))
	}
	return db, out.Bytes()
}

// A lookup that found nothing is taken to find nothing, though its key was written since; a third of them here.
func TestAdviceOfAStoreThatIsFilledOnAMiss(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "lookups of one; TestAdviceAndRewritingBesideReadersAndWriters has several")
	for _, flush := range []bool{true, false} {
		db, trace := cachedStore(t, &kv.Options{LookupSample: 1 << 20, L0CompactionThreshold: 10}, flush)
		fromTrace, err := For(t.Context(), db, &Options{Trace: bytes.NewReader(trace)})
		require.NoError(t, err)
		fromSample, err := For(t.Context(), db, nil)
		require.NoError(t, err)
		require.Equal(t, 3000, fromSample.Sample.Lookups)
		for _, a := range []*Report{fromTrace, fromSample} {
			require.Equal(t, 1000, a.Sample.Keys)
			require.Equal(t, 1000, a.Sample.Changed, "flushed %t", flush)
			// The first quarter of the lookups is not counted: 750 of 1,000 that found nothing.
			require.Equal(t, 250, a.Now.Absent.Operations)
			require.Equal(t, 2000, a.Now.Found.Operations)
			require.Less(t, a.Now.Absent.Blocks, 0.1)
			inFiles := 0.0
			if flush {
				inFiles = 1
			}
			require.InDelta(t, inFiles, a.Now.Found.Blocks, 0.01)
		}
		require.NoError(t, db.Close())
	}
}

// Paths are those of lookups with the answer of then, whatever the store has of the key now.
func TestPathsOfKeysThatChanged(t *testing.T) {
	t.Parallel()
	for _, flush := range []bool{true, false} {
		db, err := kv.Open(t.TempDir(), &kv.Options{L0CompactionThreshold: 10})
		require.NoError(t, err)
		for n := range 100 {
			fine(t, db.Set(adviceKey(n), make([]byte, 100), kv.NoSync))
		}
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		fine(t, db.Delete(adviceKey(50), kv.NoSync))
		fine(t, db.Set(adviceKey(60), []byte("new"), kv.NoSync))
		if flush {
			require.NoError(t, db.Flush(t.Context()))
		}
		w := locatorOf(t, db)
		path := func(n int, found bool) (files []string, changed bool) {
			key := adviceKey(n)
			e, err := db.Explain(key)
			require.NoError(t, err)
			k := advise.Key{Bytes: key, Hash: e.Hash, Found: found}
			require.NoError(t, w.path(&k))
			require.Equal(t, found, k.Found)
			for _, s := range k.Path {
				file := "young"
				if w.files[s.File].run.Level > 0 {
					file = "old"
				}
				if s.Present {
					file += " has it"
				}
				files = append(files, file)
			}
			return files, k.Changed
		}
		check := func(n int, found, changed bool, want ...string) {
			t.Helper()
			files, c := path(n, found)
			require.Equal(t, changed, c, "key %d, found %t, flushed %t", n, found, flush)
			require.Equal(t, want, files, "key %d, found %t, flushed %t", n, found, flush)
		}
		check(40, true, false, "old has it")
		if flush {
			check(50, false, false, "young has it")
			check(50, true, true, "young has it")
			check(60, true, false, "young has it")
			check(60, false, true, "young", "old")
		} else {
			check(50, false, false)
			check(50, true, true, "old has it")
			check(60, true, false)
			check(60, false, true, "old")
		}
		w.store.Release()
		require.NoError(t, db.Close())
	}
}

// The paths of keys are those of lookups.
func TestWhereaboutsAreThoseOfLookups(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "lookups of one goroutine")
	for _, style := range styles {
		db, _ := adviceStore(t, &kv.Options{Compaction: style, L0CompactionThreshold: 3, RunsPerLevel: 3})
		require.NoError(t, db.Set(adviceKey(1), nil, kv.NoSync)) // in a memtable
		w := locatorOf(t, db)
		steps := 0
		for n := range 4000 {
			key := adviceKey(n * 10)
			if n%3 == 0 {
				key = adviceKey(n*10 + 1)
			}
			e, err := db.Explain(key)
			require.NoError(t, err)
			k := advise.Key{Bytes: key, Hash: e.Hash, Found: e.Found}
			require.NoError(t, w.path(&k))
			require.Equal(t, e.Found, k.Found)
			var want []string
			for _, s := range e.Steps {
				if s.Level < 0 || s.Verdict == explain.RuledOutByBounds || s.Verdict == explain.RuledOutByIndex {
					continue
				}
				want = append(want, fmt.Sprint(s.Source, s.Probe.KeyPresent))
			}
			var got []string
			for _, s := range k.Path {
				got = append(got, fmt.Sprint(w.files[s.File].table.Name(), s.Present))
				block, ok, err := w.files[s.File].reader.BlockOf(key)
				require.NoError(t, err)
				require.True(t, ok)
				require.EqualValues(t, block, s.Block)
			}
			require.Equal(t, want, got, "%s", key)
			steps += len(got)
		}
		require.Greater(t, steps, 3000)
		require.Zero(t, w.guessed)
		w.store.Release()
		require.NoError(t, db.Close())
	}
}
