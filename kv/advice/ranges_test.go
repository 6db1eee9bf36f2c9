package advice

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/kv"
)

// youngRuns merges a store, and puts runs above that.
func youngRuns(t *testing.T, db *kv.DB) {
	t.Helper()
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	for run := range 5 {
		for i := range 1000 {
			require.NoError(t, db.Set(adviceKey(2*(run+20*i)), make([]byte, 100), kv.NoSync))
		}
		require.NoError(t, db.Flush(t.Context()))
	}
}

// scanNothing makes scans that find nothing.
func scanNothing(t *testing.T, db *kv.DB) {
	t.Helper()
	for i := range 3000 {
		var err error
		key := adviceKey(2*(i*7919%20_000) + 1)
		for range db.All(&kv.IterOptions{LowerBound: key, UpperBound: append(key, 'x')}, &err) {
			require.Fail(t, "it has no such key")
		}
		require.NoError(t, err)
	}
}

// Range filters that would spare scans reads are recommended by name, and those that files have are known.
func TestAdviceOfRangeFilters(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a replay in one goroutine")
	o := &kv.Options{LookupSample: 4 << 20, CacheSize: 512 << 10, L0CompactionThreshold: 100}
	db, dir := adviceStore(t, o)
	youngRuns(t, db)
	scanNothing(t, db)
	a, err := For(t.Context(), db, nil)
	require.NoError(t, err)
	require.False(t, a.Keep, "%+v", a.Front)
	require.Contains(t, a.Options, "RangeFilter = cut:")
	require.Contains(t, a.Options, "RangeFilter = "+a.Recommended.RangeFilter+"\n")
	text, err := kv.ParseOptions(a.Options)
	require.NoError(t, err)
	require.NoError(t, db.Close())

	o.RangeFilter, o.CacheSize = text.RangeFilter, text.CacheSize
	if text.Filter != nil {
		o.Filter, o.FilterBudget = text.Filter, text.FilterBudget
	}
	db, err = kv.Open(dir, o)
	require.NoError(t, err)
	stale, err := db.StaleFilters()
	require.NoError(t, err)
	require.Equal(t, stale, kv.FilterCompaction{Files: a.RewriteFiles, Bytes: a.RewriteBytes})
	_, err = db.CompactFilters(t.Context())
	require.NoError(t, err)
	scanNothing(t, db)
	b, err := For(t.Context(), db, nil)
	require.NoError(t, err)
	require.Less(t, b.Now.Scans.Blocks, a.Now.Scans.Blocks/2, "as the filters that files have now let it be")
	require.InDelta(t, a.Recommended.Scans.Blocks, b.Now.Scans.Blocks, 0.25*a.Recommended.Scans.Blocks+0.01)
	require.InEpsilon(t, float64(a.Recommended.FilterBytes), float64(b.Now.FilterBytes), 0.2)
	require.NoError(t, db.Close())
}

// sieve is a filter of an application's own.
type sieve struct{ filterpolicy.Policy }

func (sieve) Name() string   { return "sieve" }
func (sieve) String() string { return "sieve:7" }

func (s sieve) Decode(data []byte) (filterpolicy.Filter, error) {
	return filterpolicy.Decode(s.Policy.Name(), data)
}

// A filter that kv.ParseOptions does not know is not recommended.
func TestAdviceBesideAFilterOfOnesOwn(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a replay in one goroutine")
	o := &kv.Options{LookupSample: 4 << 20, CacheSize: 512 << 10, L0CompactionThreshold: 100}
	db, dir := adviceStore(t, o)
	require.NoError(t, db.Close())
	blocked, err := filterpolicy.Parse("blocked:10")
	require.NoError(t, err)
	o.Filter = sieve{blocked}
	db, err = kv.Open(dir, o)
	require.NoError(t, err)
	youngRuns(t, db)
	scanNothing(t, db)
	a, err := For(t.Context(), db, nil)
	require.NoError(t, err)
	_, err = kv.ParseOptions(a.Options)
	require.NoError(t, err)
	for _, p := range a.Front {
		require.False(t, strings.HasPrefix(p.Filter, "sieve"))
	}
	require.NoError(t, db.Close())
}
