package advice

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/advise"
	"github.com/siftkv/siftkv/internal/cli/progress"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/lookuptrace"
	"github.com/siftkv/siftkv/kv/metrics"
)

func quiet() *progress.Reporter { return progress.New(io.Discard, "none") }

func key(i int) []byte { return fmt.Appendf(nil, "user/%07d", i) }

// makeStore makes a store of some young runs over an old one, with some of everything that a store may
// hold: tombstones of keys and ranges, operands, values that expire, writes that are in a log.
func makeStore(t *testing.T, n int) string { return makeStoreApart(t, n, 0) }

// makeStoreApart is makeStore with values from a size on apart; 0 is none.
func makeStoreApart(t *testing.T, n, from int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	policy, err := filterpolicy.Parse("blocked:8")
	require.NoError(t, err)
	db, err := kv.Open(dir, &kv.Options{Filter: policy, CacheSize: 256 << 10, Merger: kv.Int64Add,
		SeparateFrom: from, L0CompactionThreshold: 20, L0SlowdownThreshold: 30, L0StopThreshold: 40})
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	value := make([]byte, 60)
	for i := range n {
		require.NoError(t, db.Set(key(2*i), value, kv.Async))
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	for run := range 5 {
		for range n / 50 {
			require.NoError(t, db.Set(key(2*random.IntN(n)), value, kv.Async))
		}
		require.NoError(t, db.Delete(key(2*(n/2+run)), kv.Async))
		require.NoError(t, db.DeleteRange(key(2*(n/3+10*run)), key(2*(n/3+10*run+5)), kv.Async))
		require.NoError(t, db.Merge(fmt.Appendf(nil, "z-counter/%d", run%2), []byte("12345678"), kv.Async))
		require.NoError(t, db.SetTTL(key(2*(n/4+run)), value, 100*time.Hour, kv.Async))
		require.NoError(t, db.Flush(t.Context()))
	}
	for i := range 20 {
		require.NoError(t, db.Set(key(2*i), []byte("in the log"), kv.Sync))
	}
	require.NoError(t, db.Close())
	return dir
}

// writeTrace looks keys up in a store and leaves a trace.
func writeTrace(t *testing.T, dir string, o *lookuptrace.Options, ask func(look func(key []byte))) string {
	t.Helper()
	db, err := kv.Open(dir, &kv.Options{ReadOnly: true, Merger: kv.Int64Add})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "lookups.trace")
	f, err := os.Create(path)
	require.NoError(t, err)
	tracer, err := lookuptrace.New(f, o)
	require.NoError(t, err)
	db.TraceLookups(tracer)
	ask(func(key []byte) {
		_, err := db.Has(key)
		require.NoError(t, err)
	})
	require.NoError(t, tracer.Close())
	require.Zero(t, tracer.Stats().Dropped)
	require.NoError(t, f.Close())
	require.NoError(t, db.Close())
	return path
}

// someKeys is how many keys a store has of which little needs to be predicted exactly.
func someKeys() int {
	if scale.Long() {
		return 20_000
	}
	return 10_000
}

// lookups asks for keys that are there and for keys that are not.
func lookups(n, times int) func(look func(key []byte)) {
	return func(look func(key []byte)) {
		random := rand.New(rand.NewPCG(3, 4))
		for i := range times {
			look(key(2*random.IntN(n-1) + i%2))
		}
	}
}

// contents reads everything that a store has.
func contents(t *testing.T, dir string) (all []string, runs []metrics.Run) {
	t.Helper()
	require.NoError(t, kv.Verify(t.Context(), dir, io.Discard))
	db, err := kv.Open(dir, &kv.Options{ReadOnly: true, Merger: kv.Int64Add})
	require.NoError(t, err)
	it, err := db.NewIter(nil)
	require.NoError(t, err)
	for ok := it.First(); ok; ok = it.Next() {
		all = append(all, fmt.Sprintf("%s=%x", it.Key(), it.Value()))
	}
	require.NoError(t, it.Close())
	runs = db.Metrics().Runs
	require.NoError(t, db.Close())
	return all, runs
}

// files returns the files of a directory with what is in them.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	all := map[string][]byte{}
	for _, e := range entries {
		all[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
	}
	return all
}

// leeway returns by how much a prediction of reads may be off: where keys lie in blocks of another size is guessed.
func leeway(c *Check, exact float64) float64 {
	if c.Setting.BlockSize > 0 {
		return exact + 0.2
	}
	return exact
}

// What is predicted is what the store and its copies count, and the store stays as it was.
func TestPredictionsAreWhatStoresCount(t *testing.T) {
	t.Parallel()
	const n = 12_000
	dir := makeStore(t, n)
	path := writeTrace(t, dir, &lookuptrace.Options{Keys: true}, lookups(n, n))
	before := files(t, dir)
	r, err := Advise(t.Context(), Config{Store: dir, Trace: path, Sweep: true, Progress: quiet(), Dir: t.TempDir(),
		Filters: []string{"none", "blocked:6", "blocked:16", "ribbon:8", "cuckoo:12"}})
	require.NoError(t, err)
	require.Equal(t, before, files(t, dir))
	require.Len(t, r.Shape, 6)
	require.Greater(t, len(r.Checks), 12)
	for _, c := range r.Checks {
		require.InDelta(t, 0, c.Blocks, 0.03, c.Setting.Name())
		require.InDelta(t, 0, c.Reads, leeway(&c, 0.05), c.Setting.Name())
		require.InDelta(t, 0, c.Bytes, leeway(&c, 0.05), c.Setting.Name())
		require.InEpsilon(t, c.Setting.All.Probes+1, c.Measured.All.Probes+1, 1e-9, c.Setting.Name())
		require.Equal(t, c.Measured.All.Operations, c.Measured.Found.Operations+c.Measured.Absent.Operations)
	}
	require.Less(t, r.Verdict.Regret, 0.05)
	require.Equal(t, r.Verdict.Checks, r.Verdict.BlocksIn10)
	require.Equal(t, int64(256<<10), r.Advice.Now.Cache, "from the options of the store")
	require.NotContains(t, r.Advice.Unknown, "family")
	if options := r.Advice.Recommendation.Options; options != "" {
		o, err := kv.ParseOptions(options)
		require.NoError(t, err)
		require.Equal(t, r.Advice.Recommendation.Setting.Cache, o.CacheSize)
	}
}

// A copy has all that the store has, in the same runs, under other filters.
func TestACopyHasWhatTheStoreHas(t *testing.T) {
	t.Parallel()
	testCopy(t, makeStore(t, 3000))
	dir := makeStoreApart(t, 3000, 50)
	testCopy(t, dir)
	blobs, err := filepath.Glob(filepath.Join(dir, "*.blob"))
	require.NoError(t, err)
	require.NotEmpty(t, blobs)
}

func testCopy(t *testing.T, dir string) {
	want, runs := contents(t, dir)
	s, err := openStore(t.Context(), dir)
	require.NoError(t, err)
	for _, o := range []advise.Setting{{Filter: "ribbon:8"}, {Filter: "none"}, {Filter: "bloom:10", Budget: 4000}} {
		to := filepath.Join(t.TempDir(), "copy")
		require.NoError(t, s.copyTo(t.Context(), to, o))
		got, copied := contents(t, to)
		require.Equal(t, want, got)
		require.Len(t, copied, len(runs))
		filters := int64(0)
		for i := range runs {
			require.Equal(t, runs[i].Entries, copied[i].Entries)
			require.Equal(t, runs[i].Level, copied[i].Level)
			filters += copied[i].FilterBytes
		}
		predicted := advise.New(&s.shape, &advise.Trace{}, advise.UsualPrices()).Predict(o, 1<<20)[0]
		require.InDelta(t, predicted.FilterBytes, filters, 0.05*float64(filters)+100, o.Filter)
	}
	require.NoError(t, s.close())
}

// Of a store with values in blob files all is predicted and counted as without: what is read of the files is not
// among it, and nothing of them is read to find out.
func TestPredictionsOfStoresWithBlobFiles(t *testing.T) {
	t.Parallel()
	const n = 20_000
	dir := makeStoreApart(t, n, 50)
	path := writeTrace(t, dir, &lookuptrace.Options{Keys: true}, lookups(n, 10_000))
	before := files(t, dir)
	r, err := Advise(t.Context(), Config{Store: dir, Trace: path, Sweep: true, Progress: quiet(), Dir: t.TempDir(),
		Filters: []string{"none", "blocked:16", "ribbon:8"}})
	require.NoError(t, err)
	require.Equal(t, before, files(t, dir))
	require.Greater(t, len(r.Checks), 6)
	for _, c := range r.Checks {
		require.InDelta(t, 0, c.Blocks, 0.03, c.Setting.Name())
		require.InDelta(t, 0, c.Reads, leeway(&c, 0.05), c.Setting.Name())
		require.InDelta(t, 0, c.Bytes, leeway(&c, 0.05), c.Setting.Name())
	}
	require.Contains(t, fmt.Sprint(r.Advice.Unknown), "values that lie apart")
	known, err := Advise(t.Context(), Config{Store: makeStore(t, 100), Trace: path, Progress: quiet()})
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprint(known.Advice.Unknown), "values that lie apart")
}

// Of hashes all is predicted that does not depend on where keys are, and what does is said.
func TestHashesSayLess(t *testing.T) {
	t.Parallel()
	n := someKeys()
	dir := makeStore(t, n)
	ask := lookups(n, n)
	known, err := Advise(t.Context(), Config{Store: dir, Progress: quiet(),
		Trace: writeTrace(t, dir, &lookuptrace.Options{Keys: true}, ask)})
	require.NoError(t, err)
	path := writeTrace(t, dir, nil, ask)
	r, err := Advise(t.Context(), Config{Store: dir, Trace: path, Progress: quiet()})
	require.NoError(t, err)
	require.InEpsilon(t, known.Advice.Now.All.Blocks, r.Advice.Now.All.Blocks, 0.1)
	require.InEpsilon(t, known.Advice.Now.All.Reads, r.Advice.Now.All.Reads, 0.15)
	require.Contains(t, fmt.Sprint(r.Advice.Unknown), "hashes")
	require.NotEqual(t, "high", r.Advice.Recommendation.Confidence)
	_, err = Advise(t.Context(), Config{Store: dir, Trace: path, Verify: true, Progress: quiet()})
	require.ErrorIs(t, err, bench.ErrUsage)
}

// What is no store, or no trace, is an error that says so.
func TestWhatIsNoStoreIsRefused(t *testing.T) {
	t.Parallel()
	dir := makeStore(t, 100)
	path := writeTrace(t, dir, &lookuptrace.Options{Keys: true}, lookups(100, 100))
	_, err := Advise(t.Context(), Config{Store: t.TempDir(), Trace: path, Progress: quiet()})
	require.Error(t, err)
	_, err = Advise(t.Context(), Config{Store: dir, Trace: filepath.Join(dir, "CURRENT"), Progress: quiet()})
	require.ErrorIs(t, err, bench.ErrUsage)
	empty := writeTrace(t, dir, &lookuptrace.Options{Keys: true}, func(func([]byte)) {})
	_, err = Advise(t.Context(), Config{Store: dir, Trace: empty, Progress: quiet()})
	require.ErrorIs(t, err, bench.ErrUsage)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	broken := filepath.Join(t.TempDir(), "broken.trace")
	require.NoError(t, os.WriteFile(broken, bytes.Replace(data, []byte("user/"), []byte("User/"), 1), 0o600))
	_, err = Advise(t.Context(), Config{Store: dir, Trace: broken, Progress: quiet()})
	require.Error(t, err)
}

// Scans are predicted and counted as lookups are, with and without range filters, to their ends and broken off.
func TestScansArePredicted(t *testing.T) {
	t.Parallel()
	n := someKeys() * 2 / 5
	dir := makeStore(t, n)
	db, err := kv.Open(dir, &kv.Options{ReadOnly: true, Merger: kv.Int64Add})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "scans.trace")
	f, err := os.Create(path)
	require.NoError(t, err)
	tracer, err := lookuptrace.New(f, &lookuptrace.Options{Keys: true})
	require.NoError(t, err)
	db.TraceLookups(tracer)
	random := rand.New(rand.NewPCG(5, 6))
	for i := range n / 4 {
		at := 2 * random.IntN(n-200)
		width := []int{1, 20, 400}[i%3]
		it, err := db.NewIter(&kv.IterOptions{LowerBound: key(at + 1), UpperBound: key(at + 1 + width)})
		require.NoError(t, err)
		for ok := it.First(); ok; ok = it.Next() {
		}
		require.NoError(t, it.Close())
		_, err = db.Has(key(at))
		require.NoError(t, err)
	}
	require.NoError(t, tracer.Close())
	require.NoError(t, f.Close())
	require.NoError(t, db.Close())
	r, err := Advise(t.Context(), Config{Store: dir, Trace: path, Sweep: true, Progress: quiet(), Dir: t.TempDir()})
	require.NoError(t, err)
	require.Equal(t, n/4, r.Advice.Sample.Scans)
	ranges := 0
	for _, c := range r.Checks {
		require.InDelta(t, 0, c.Blocks, 0.05, c.Setting.Name())
		require.InDelta(t, 0, c.Scans, 0.1, c.Setting.Name())
		require.InDelta(t, 0, c.ScanReads, leeway(&c, 0.1), c.Setting.Name())
		if c.Setting.Ranges != "" && c.Setting.BlockSize == 0 {
			ranges++
			require.Less(t, c.Measured.Scans.Blocks, 0.8*r.Checks[0].Measured.Scans.Blocks)
		}
	}
	require.Positive(t, ranges)
}

// Of a store with operands of an application's own merger, lookups are predicted and measured too.
func TestOperandsOfAnUnknownMerger(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	own := kv.NewMerger("app.set-of-words", func(_, older, newer []byte) ([]byte, error) {
		return append(older, newer...), nil
	})
	db, err := kv.Open(dir, &kv.Options{Merger: own, CacheSize: 512 << 10, L0CompactionThreshold: 20,
		L0SlowdownThreshold: 30, L0StopThreshold: 40})
	require.NoError(t, err)
	const n = 6000
	for i := range n {
		require.NoError(t, db.Set(key(2*i), make([]byte, 200), kv.Async))
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	for range 3 {
		for i := range n / 3 {
			require.NoError(t, db.Merge(key(6*i), []byte("more"), kv.Async))
		}
		require.NoError(t, db.Flush(t.Context()))
	}
	path := filepath.Join(t.TempDir(), "lookups.trace")
	f, err := os.Create(path)
	require.NoError(t, err)
	tracer, err := lookuptrace.New(f, &lookuptrace.Options{Keys: true})
	require.NoError(t, err)
	db.TraceLookups(tracer)
	lookups(n, 2*n)(func(key []byte) {
		_, err := db.Has(key)
		require.NoError(t, err)
	})
	require.NoError(t, tracer.Close())
	require.NoError(t, f.Close())
	require.NoError(t, db.Close())
	r, err := Advise(t.Context(), Config{Store: dir, Trace: path, Sweep: true, Progress: quiet(), Dir: t.TempDir(),
		Filters: []string{"blocked:6", "ribbon:8"}})
	require.NoError(t, err)
	require.Zero(t, r.Advice.Sample.Changed)
	for _, c := range r.Checks {
		require.InDelta(t, 0, c.Blocks, 0.03, c.Setting.Name())
		require.InDelta(t, 0, c.Reads, leeway(&c, 0.05), c.Setting.Name())
	}
	require.Greater(t, r.Advice.Now.Found.Blocks, 1.9, "a third of the keys have operands in three files")
}
