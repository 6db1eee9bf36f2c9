package kv

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/advise"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/kv/explain"
	"github.com/siftkv/siftkv/kv/lookuptrace"
)

// adviceStore returns a store of several runs, in a directory, with keys that are even numbers.
func adviceStore(t *testing.T, o *Options) (*DB, string) {
	t.Helper()
	dir := t.TempDir()
	o.MemtableSize, o.TargetFileSize, o.BaseLevelSize = 256<<10, 64<<10, 128<<10
	db, err := Open(dir, o)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 1))
	for i, n := range rng.Perm(20_000) {
		fine(t, db.Set(adviceKey(2*n), make([]byte, 100), NoSync))
		if i%1000 == 999 {
			fine(t, db.Delete(adviceKey(2*n), NoSync))
		}
	}
	require.NoError(t, db.Flush(t.Context()))
	settleStore(t, db)
	return db, dir
}

func adviceKey(n int) []byte { return fmt.Appendf(nil, "user/%06d/name", n) }

// ask looks keys up and scans, and returns how many of either.
func ask(t *testing.T, db *DB) (lookups, scans int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(2, 2))
	for i := range 4000 {
		_, err := db.Has(adviceKey(rng.IntN(40_000)))
		fine(t, err)
		if i%40 == 0 {
			lo := rng.IntN(40_000)
			var err error
			for range db.All(&IterOptions{LowerBound: adviceKey(lo), UpperBound: adviceKey(lo + rng.IntN(20))}, &err) {
			}
			fine(t, err)
			scans++
		}
	}
	return 4000, scans
}

func TestAdviceFromTheSample(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a replay in one goroutine")
	for i, partition := range []int{0, 64, 0} {
		from := -1
		if i == 2 {
			from = 50
		}
		db, dir := adviceStore(t, &Options{LookupSample: 1 << 20, CacheSize: 256 << 10, IndexPartition: partition,
			SeparateFrom: from})
		_, err := db.Advise(t.Context(), nil)
		require.ErrorIs(t, err, ErrSmallSample)
		require.ErrorContains(t, err, "there are 0 lookups and 0 scans, and 1000 are wanted")
		lookups, scans := ask(t, db)
		before := db.Metrics()
		a, err := db.Advise(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, before.Gets, db.Metrics().Gets, "advice is no lookup")
		requireAdvice(t, a)
		require.Equal(t, from > 0, strings.Contains(fmt.Sprint(a.Unknown), "values that lie apart"))
		if from > 0 {
			require.Equal(t, before.Blobs, db.Metrics().Blobs, "nothing is read of blob files")
			require.Positive(t, before.Blobs.Files)
		}
		require.Equal(t, []int{lookups, scans}, []int{a.Sample.Lookups, a.Sample.Scans})
		require.EqualValues(t, 1, a.Sample.OneIn)
		require.Zero(t, a.Sample.Changed)
		require.Positive(t, a.Now.FilterBytes)
		require.EqualValues(t, 256<<10, a.Now.CacheSize)
		if partition > 0 {
			require.Contains(t, fmt.Sprint(a.Unknown), "partitioned indexes")
		} else {
			require.NotContains(t, fmt.Sprint(a.Unknown), "partitioned indexes")
		}
		o, err := ParseOptions(a.Options)
		require.NoError(t, err)
		stale := FilterCompaction{a.RewriteFiles, a.RewriteBytes}
		require.NoError(t, db.Close())
		_, err = db.Advise(t.Context(), nil)
		require.ErrorIs(t, err, ErrClosed)
		if a.Keep || o.Filter == nil {
			continue
		}
		o.MemtableSize, o.TargetFileSize, o.BaseLevelSize = 256<<10, 64<<10, 128<<10
		db, err = Open(dir, o)
		require.NoError(t, err)
		got, err := db.StaleFilters()
		require.NoError(t, err)
		require.Equal(t, stale, got, "what it said would be rewritten")
		require.NoError(t, db.Close())
	}
}

// requireAdvice checks what holds of all advice.
func requireAdvice(t *testing.T, a *Advice) {
	t.Helper()
	require.NotEmpty(t, a.Words)
	require.Contains(t, []string{"high", "medium", "low"}, a.Confidence)
	require.NotEmpty(t, a.Why)
	require.NotEmpty(t, a.Unknown)
	require.NotEmpty(t, a.Prices)
	require.NotEmpty(t, a.Caches)
	require.NotEmpty(t, a.Worth)
	require.Len(t, a.Styles, int(numCompactions))
	require.Equal(t, a.Keep, a.Options == "")
	require.Equal(t, a.Keep, a.Recommended == a.Now)
	require.True(t, a.Gain >= 0 && a.Gain <= 1)
	for i, p := range a.Front {
		require.GreaterOrEqual(t, p.Memory, p.FilterBytes+p.CacheSize) // and the memory of false positives
		require.True(t, i == 0 || p.Memory > a.Front[i-1].Memory)
	}
	require.Positive(t, a.Now.Lookups.Operations)
	require.Positive(t, a.Now.Lookups.Nanos)
	require.LessOrEqual(t, a.Now.Lookups.DeviceReads, a.Now.Lookups.Blocks+1e-9)
}

func TestAdviceFromATrace(t *testing.T) {
	scale.OneGoroutine(t, "a replay in one goroutine")
	t.Parallel()
	for _, keys := range []bool{true, false} {
		db, dir := adviceStore(t, &Options{})
		var out bytes.Buffer
		tracer, err := lookuptrace.New(&out, &lookuptrace.Options{Keys: keys})
		require.NoError(t, err)
		db.TraceLookups(tracer)
		lookups, scans := ask(t, db)
		require.NoError(t, tracer.Close())
		_, err = db.Advise(t.Context(), nil)
		require.ErrorIs(t, err, ErrNoLookupSample)
		require.NoError(t, db.Close())

		db, err = Open(dir, &Options{ReadOnly: true})
		require.NoError(t, err)
		a, err := db.Advise(t.Context(), &AdviceOptions{Trace: bytes.NewReader(out.Bytes())})
		require.NoError(t, err)
		requireAdvice(t, a)
		require.Equal(t, []int{lookups, scans}, []int{a.Sample.Lookups, a.Sample.Scans})
		require.Positive(t, a.Sample.Span)

		cut := out.Len() - 10
		_, err = db.Advise(t.Context(), &AdviceOptions{Trace: bytes.NewReader(out.Bytes()[:cut])})
		require.NoError(t, err, "a trace without an end is taken as far as it goes")
		damaged := bytes.Clone(out.Bytes())
		damaged[out.Len()/2] ^= 1
		_, err = db.Advise(t.Context(), &AdviceOptions{Trace: bytes.NewReader(damaged)})
		require.ErrorIs(t, err, ErrCorruption)
		_, err = db.Advise(t.Context(), &AdviceOptions{Trace: bytes.NewReader(nil)})
		require.ErrorContains(t, err, "not a lookup trace")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = db.Advise(ctx, &AdviceOptions{Trace: bytes.NewReader(out.Bytes())})
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, db.Close())
	}
}

// The paths of keys are those of lookups.
func TestWhereaboutsAreThoseOfLookups(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "lookups of one goroutine")
	for style := range numCompactions {
		db, _ := adviceStore(t, &Options{Compaction: style, L0CompactionThreshold: 3, RunsPerLevel: 3})
		require.NoError(t, db.Set(adviceKey(1), nil, NoSync)) // in a memtable
		w, err := db.newWhereabouts()
		require.NoError(t, err)
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
		w.close()
		require.NoError(t, db.Close())
	}
}

// Scans come to the blocks that have their entries.
func TestScansLeadToTheirBlocks(t *testing.T) {
	t.Parallel()
	db, _ := adviceStore(t, &Options{})
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	w, err := db.newWhereabouts()
	require.NoError(t, err)
	blocksOf := func(s advise.Scan) (n int) {
		for _, p := range s.Parts {
			n += int(p.Blocks)
		}
		return n
	}
	perBlock := float64(w.shape.Files[0].Keys) / float64(w.shape.Files[0].Blocks)
	for _, n := range []int{0, 1, 10, 100, 5000} {
		lo, hi := adviceKey(10_000), adviceKey(10_000+2*n)
		for _, s := range []advise.Scan{{Start: lo, End: hi, Ended: true}, {Start: lo}, {Start: hi, Backward: true},
			{Start: hi, End: lo, Ended: true, Backward: true}} {
			s.Entries = n
			w.scan(&s)
			if n == 0 && s.End != nil {
				require.Empty(t, s.Parts)
				continue
			}
			require.InDelta(t, float64(n)/perBlock+1, blocksOf(s), 3+float64(n)/perBlock/20, "%+v", s)
			require.Equal(t, n == 0, s.Parts[0].Empty)
			require.Equal(t, s.End != nil, s.Bounded)
			if s.Bounded {
				require.GreaterOrEqual(t, s.Prefix, len("user/0"))
			}
		}
	}
	s := advise.Scan{Entries: 1 << 30, Bounded: true, Hashed: true}
	w.scan(&s)
	require.Empty(t, s.Parts)
	s = advise.Scan{Entries: 1 << 30, Ended: true}
	w.scan(&s)
	require.Len(t, s.Parts, min(maxScanParts, len(w.files)))
	w.close()
	require.NoError(t, db.Close())
}

// The empty key of a sample is found where it is, as others are.
func TestAdviceFindsTheEmptyKey(t *testing.T) {
	db, err := Open(t.TempDir(), &Options{LookupSample: 64 << 10})
	require.NoError(t, err)
	require.NoError(t, db.Set(nil, []byte("value"), NoSync))
	require.NoError(t, db.Flush(t.Context()))
	_, err = db.Get(nil)
	require.NoError(t, err)
	s := db.watch.sampler.Take()
	asked := traceOfSample(&s)
	w, err := db.newWhereabouts()
	require.NoError(t, err)
	require.NoError(t, w.locate(t.Context(), asked))
	require.Len(t, asked.Keys, 1)
	require.Equal(t, []advise.Step{{Present: true}}, asked.Keys[0].Path)
	require.True(t, asked.Keys[0].Found)
	require.Zero(t, asked.Changed)
	w.close()
	require.NoError(t, db.Close())
}
