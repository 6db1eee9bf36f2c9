package s3

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// some returns a trouble for every so many requests of some kinds; the others pass.
func some(every int64, then http.HandlerFunc, kinds ...objstore.Kind) trouble {
	return func(w http.ResponseWriter, r *http.Request, kind objstore.Kind, nth int64, pass http.Handler) {
		if nth%every == 1 && slices.Contains(kinds, kind) {
			then(w, r)
			return
		}
		pass.ServeHTTP(w, r)
	}
}

// slowly sends a reply in pieces, with pauses that a try has no time for.
func (p *proxy) slowly(w http.ResponseWriter, r *http.Request) {
	reply := httptest.NewRecorder()
	p.forward.ServeHTTP(reply, r)
	maps.Copy(w.Header(), reply.Header())
	w.WriteHeader(reply.Code)
	_, _ = w.Write(reply.Body.Bytes()[:reply.Body.Len()/2])
	_ = http.NewResponseController(w).Flush()
	select {
	case <-r.Context().Done():
	case <-time.After(time.Second):
		_, _ = w.Write(reply.Body.Bytes()[reply.Body.Len()/2:])
	}
}

// A lag leaves the newest objects out of listings.
type lag struct {
	p       *proxy
	objects int

	mu     sync.Mutex
	newest []string // keys, as they stand in listings
	hidden int
}

var contentsOf = regexp.MustCompile(`(?s)<Contents>.*?</Contents>`)

func (l *lag) serve(w http.ResponseWriter, r *http.Request, kind objstore.Kind, _ int64, pass http.Handler) {
	switch kind {
	case objstore.Put, objstore.PutIfAbsent:
		_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		l.mu.Lock()
		l.newest = append(l.newest, key)
		l.newest = l.newest[max(0, len(l.newest)-l.objects):]
		l.mu.Unlock()
	case objstore.List:
		reply := httptest.NewRecorder()
		pass.ServeHTTP(reply, r)
		l.mu.Lock()
		defer l.mu.Unlock()
		body := contentsOf.ReplaceAllStringFunc(reply.Body.String(), func(object string) string {
			if slices.ContainsFunc(l.newest, func(key string) bool { return strings.Contains(object, key+"</Key>") }) {
				l.hidden++
				return ""
			}
			return object
		})
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(reply.Code)
		_, _ = io.WriteString(w, body)
		return
	}
	pass.ServeHTTP(w, r)
}

// A store gets over each of these by itself: what was written is there, for its writer, for the next one, and for a
// reader beside them.
func TestAStoreInABucketWithTroubles(t *testing.T) {
	p := newProxy(t, newServer(t))
	late := &lag{p: p, objects: 3}
	writes := []objstore.Kind{objstore.Put, objstore.PutIfAbsent, objstore.Delete}
	for name, trouble := range map[string]trouble{
		"lost replies":     some(3, p.lose, writes...),
		"lost requests":    some(3, reset, writes...),
		"throttling":       some(2, refuse(http.StatusServiceUnavailable, "SlowDown"), append(writes, objstore.Get)...),
		"truncated bodies": some(2, p.cut, objstore.Get, objstore.List),
		"slow reads":       some(20, p.slowly, objstore.Get),
		"a lagging list":   late.serve,
	} {
		t.Run(name, func(t *testing.T) {
			p.makes(nil)
			plain := p.open(t)
			first := openBucket(t, plain, 0, 0)
			first.write(5)
			require.NoError(t, first.db.Close())
			p.makes(trouble)
			n := first.n
			for life := range 3 {
				s := plain.by(t, p.server, func(c *Config) { c.Timeout = 200 * time.Millisecond })
				o := bucketOptions(s)
				o.Objects.(*objects.Config).Patience = 5 * time.Minute
				o.Objects.(*objects.Config).Grace = 0 // lists that lag need time before anything is deleted
				db, err := kv.Open("", o)
				require.NoError(t, err)
				w := &bucketWriter{t: t, db: db, n: checkBucket(t, db, n, n)}
				view, err := kv.OpenReadOnly("", o)
				require.NoError(t, err)
				w.write(25)
				require.NoError(t, view.Refresh(t.Context()))
				checkBucket(t, view, w.n, w.n)
				require.NoError(t, view.Close())
				checkBucket(t, db, w.n, w.n)
				if n = w.n; life != 1 { // else the next one takes over
					require.NoError(t, db.Close())
				} else {
					t.Cleanup(func() { _ = db.Close() })
				}
			}
			p.makes(nil)
			last := openBucket(t, plain, n, n)
			require.NoError(t, last.db.Close())
		})
	}
	require.Positive(t, late.hidden)
}

// A store that has run out of patience says so, and goes on when the server is there again.
func TestAStoreInABucketThatIsGoneForAWhile(t *testing.T) {
	p := newProxy(t, newServer(t))
	s := p.open(t, func(c *Config) { c.Tries = 2 })
	w := openBucket(t, s, 0, 0)
	w.write(20)
	p.makes(func(w http.ResponseWriter, r *http.Request, _ objstore.Kind, _ int64, _ http.Handler) { reset(w, r) })
	require.Error(t, w.db.Set([]byte("unknown"), nil, kv.Sync))
	err := w.db.Set([]byte("refused"), nil, kv.Sync)
	require.ErrorIs(t, err, kv.ErrReadOnly)
	p.makes(nil)
	require.Eventually(t, func() bool {
		err = w.db.Delete([]byte("refused"), kv.Sync)
		return !errors.Is(err, kv.ErrReadOnly)
	}, 5*time.Minute, time.Millisecond)
	require.NoError(t, err)
	require.NoError(t, w.db.Delete([]byte("unknown"), kv.Sync))
	w.write(20)
	require.NoError(t, w.db.Close())
	require.NoError(t, openBucket(t, s, w.n, w.n).db.Close())
}
