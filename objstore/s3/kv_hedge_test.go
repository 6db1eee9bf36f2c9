package s3

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// Lookups of a store overtake replies that do not come, at the price of a request each, and leave neither goroutines
// nor connections behind.
func TestLookupsInABucketAreHedged(t *testing.T) {
	p := newProxy(t, newServer(t))
	s, counters := counted(t, p, func(c *Config) { c.HedgeAfter = 20 * time.Millisecond })
	o := bucketOptions(s)
	o.CacheSize, o.Objects.(*objects.Config).Grace = -1, time.Hour
	db, err := kv.Open("", o)
	require.NoError(t, err)
	const lookups = 100
	key := func(i int) []byte { return fmt.Appendf(nil, "%03d", i) }
	for i := range lookups {
		require.NoError(t, db.Set(key(i), make([]byte, 3000), kv.Async))
	}
	require.NoError(t, errors.Join(db.Flush(t.Context()), db.Compact(t.Context(), nil, nil)))
	goroutines := runtime.NumGoroutine()
	before := counters.Snapshot()
	p.makes(some(2, hang, objstore.Get)) // who is overtaken is the one before
	for i := range lookups {
		_, err := db.Get(key(i))
		require.NoError(t, err)
	}
	count := counters.Snapshot().Minus(before)[objstore.Get]
	require.EqualValues(t, lookups, count.Hedges)
	require.EqualValues(t, 2*lookups, count.Requests, "both are billed")
	require.EqualValues(t, 2*lookups, p.requests(objstore.Get))
	require.Zero(t, count.Retries)
	p.makes(nil)
	left := func() bool { // idle connections are kept, with five goroutines each, on both sides of the proxy
		return p.conns.Load() > 16 || runtime.NumGoroutine() > goroutines+90
	}
	for end := time.Now().Add(5 * time.Minute); left() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	require.False(t, left(), "%d connections, %d goroutines, %d before", p.conns.Load(), runtime.NumGoroutine(),
		goroutines)
	require.NoError(t, db.Close())
}

// What is slow to begin with and then comes is taken too: a hedge that is lost costs nothing but its request.
func TestAHedgeOfAStoreThatComesTooLate(t *testing.T) {
	p := newProxy(t, newServer(t))
	s, counters := counted(t, p, func(c *Config) { c.HedgeAfter = time.Millisecond })
	w := openBucket(t, s, 0, 0)
	w.write(10)
	require.NoError(t, w.db.Close())
	p.makes(func(w http.ResponseWriter, r *http.Request, kind objstore.Kind, _ int64, pass http.Handler) {
		if kind == objstore.Get {
			time.Sleep(3 * time.Millisecond)
		}
		pass.ServeHTTP(w, r)
	})
	next := openBucket(t, s, w.n, w.n)
	require.NoError(t, next.db.Close())
	require.Positive(t, counters.Snapshot()[objstore.Get].Hedges)
}
