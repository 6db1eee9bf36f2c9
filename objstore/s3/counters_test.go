package s3

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
)

// TestCountersAgreeWithTheServer has all kinds of calls and troubles, and compares what the client counts with what
// arrives. Hedges are counted in their own test: whether one that is cut off arrives at all depends on the network.
func TestCountersAgreeWithTheServer(t *testing.T) {
	p := newProxy(t, newServer(t))
	s, c := counted(t, p, inParts)
	troubles := []http.HandlerFunc{
		refuse(http.StatusServiceUnavailable, "SlowDown"), refuse(http.StatusInternalServerError, "InternalError"),
		p.lose, reset,
	}
	p.makes(func(w http.ResponseWriter, r *http.Request, kind objstore.Kind, nth int64, pass http.Handler) {
		if nth%13 == 0 && kind != objstore.Get { // net/http repeats reads itself when a connection that it kept breaks
			troubles[int(nth/13)%len(troubles)](w, r)
			return
		}
		if nth%13 == 0 {
			troubles[0](w, r)
			return
		}
		pass.ServeHTTP(w, r)
	})
	const objects = 1100 // more than a page
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := worker; i < objects; i += 8 {
				key := fmt.Sprintf("%d/%d", i%7, i)
				_ = objstore.Commit(t.Context(), s, key, []byte(key))
				_, _ = s.GetRange(t.Context(), key, 0, make([]byte, len(key)+1))
			}
		})
	}
	all.Wait()
	require.NoError(t, putBig(t.Context(), s, "big"))
	listed := 0
	for o, err := range s.List(t.Context(), "", "") {
		require.NoError(t, err)
		if listed++; listed%10 == 0 {
			require.NoError(t, s.Delete(t.Context(), o.Key))
		}
	}
	require.Equal(t, objects+1, listed)
	require.NoError(t, s.Close())
	counts := c.Snapshot()
	for kind := range objstore.Kind(objstore.NumKinds) {
		require.Equal(t, p.requests(kind), counts[kind].Requests, "%v", kind)
		require.Positive(t, counts[kind].Requests, "%v", kind)
	}
	require.Positive(t, counts.Total().Retries)
	require.Positive(t, counts.Total().Throttled)
}
