package advice

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/lookuptrace"
)

// A program that writes what it does not find leaves a trace of lookups that found nothing, of keys that are all there
// at the end. They are predicted and measured as lookups that find nothing.
func TestAStoreThatIsFilledOnAMiss(t *testing.T) {
	t.Parallel()
	const n, gone = 4000, 10
	dir := filepath.Join(t.TempDir(), "store")
	db, err := kv.Open(dir, &kv.Options{CacheSize: 256 << 10, L0CompactionThreshold: 20})
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, db.Set(key(4*i), make([]byte, 60), kv.Async))
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	path := filepath.Join(t.TempDir(), "lookups.trace")
	f, err := os.Create(path)
	require.NoError(t, err)
	tracer, err := lookuptrace.New(f, &lookuptrace.Options{Keys: true})
	require.NoError(t, err)
	db.TraceLookups(tracer)
	found, absent := 0, 0
	for i := range 3 * n { // each key twice, one right behind the other
		k := key(4*(i/2) + 2*(i/2%2))
		ok, err := db.Has(k)
		require.NoError(t, err)
		if ok {
			found++
			continue
		}
		absent++
		require.NoError(t, db.Set(k, make([]byte, 60), kv.Async))
	}
	require.NoError(t, tracer.Close())
	require.NoError(t, f.Close())
	require.NoError(t, db.Flush(t.Context()))
	for i := range gone {
		require.NoError(t, db.Delete(key(4*(n-2-2*i)), kv.Async)) // looked up twice, and there until now
	}
	require.NoError(t, db.Close())
	require.Greater(t, absent, n/2)

	r, err := Advise(t.Context(), Config{Store: dir, Trace: path, Sweep: true, Progress: quiet(), Dir: t.TempDir(),
		Filters: []string{"blocked:6", "none"}})
	require.NoError(t, err)
	require.Equal(t, found, r.Advice.Sample.Found)
	require.Equal(t, absent+2*gone, r.Advice.Sample.Changed)
	for _, c := range r.Checks {
		require.InDelta(t, 0, c.Blocks, 0.03, c.Setting.Name())
		require.InDelta(t, 0, c.Reads, leeway(&c, 0.05), c.Setting.Name())
		require.Equal(t, 2*gone, c.Measured.Left)
		require.Equal(t, c.Setting.Absent.Operations, c.Measured.Absent.Operations)
	}
	require.Less(t, r.Checks[0].Measured.Absent.Blocks, 0.2)
	require.InDelta(t, 1, r.Advice.Now.Found.Blocks, 0.05)
}
