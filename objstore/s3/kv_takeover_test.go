package s3

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/objstore"
)

// objectKeys returns the store's objects of a kind, by key and content.
func objectKeys(t testing.TB, s objstore.Store, prefix string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for o, err := range s.List(t.Context(), prefix, "") {
		require.NoError(t, err)
		b, err := objstore.ReadAll(t.Context(), s, o.Key, 0)
		if errors.Is(err, objstore.ErrNotExist) {
			continue // it was deleted meanwhile
		}
		require.NoError(t, err)
		all[o.Key] = string(b)
	}
	return all
}

// Writers at two gateways of one bucket take the store over from each other.
func TestWritersAtTwoGateways(t *testing.T) {
	a := newServer(t)
	b := a
	if a.own {
		dir := gatewayDir(t)
		a, b = startGateway(t, dir), startGateway(t, dir)
		a.makeBucket(t)
	}
	s := a.open(t)
	places := []objstore.Store{s, s.by(t, b)}
	before := openBucket(t, s, 0, 0)
	before.write(20)
	for life := range 4 {
		w := openBucket(t, places[1-life%2], before.synced, before.n)
		before.requireFenced()
		checkBucket(t, w.db, w.n, w.n)
		w.write(20)
		before = w
	}
	require.NoError(t, before.db.Close())
}

// A writer is held up in a request, or cut off, while another takes over, compacts and deletes; when it goes on it
// publishes nothing, and deletes nothing that is needed.
func TestAWriterInABucketThatStalls(t *testing.T) {
	p := newProxy(t, newServer(t))
	for name, is := range map[string]func(r *http.Request, kind objstore.Kind) bool{
		"in an entry":         stalls(objstore.PutIfAbsent, "/entry/"),
		"in an upload":        stalls(objstore.Put, "/sst/"),
		"before a collection": stalls(objstore.Delete, "/"),
		"altogether":          func(*http.Request, objstore.Kind) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			p.makes(nil)
			old := openBucket(t, p.open(t), 0, 0)
			old.write(30)
			plain := p.server
			plain.endpoint = p.behind
			s := old.bucket(t).by(t, plain)
			reached, release := make(chan struct{}), make(chan struct{})
			var once sync.Once
			let := sync.OnceFunc(func() { close(release) })
			t.Cleanup(let)
			p.makes(func(w http.ResponseWriter, r *http.Request, kind objstore.Kind, _ int64, pass http.Handler) {
				if is(r, kind) {
					once.Do(func() { close(reached) })
					<-release
				}
				pass.ServeHTTP(w, r)
			})
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for range 100 {
					if old.try() != nil {
						return
					}
				}
			}()
			<-reached
			w := openBucket(t, s, 30, 1000)
			for range 3 {
				w.write(10)
				require.NoError(t, w.db.Compact(t.Context(), nil, nil))
			}
			lists := objectKeys(t, s, "entry/")
			let()
			<-ended
			old.requireFenced()
			for key, now := range objectKeys(t, s, "entry/") {
				if list, ok := lists[key]; ok {
					require.Equal(t, list, now)
				}
			}
			checkBucket(t, w.db, w.n, w.n)
			require.NoError(t, w.db.Close())
			require.NoError(t, openBucket(t, s, w.n, w.n).db.Close())
		})
	}
}

func stalls(of objstore.Kind, in string) func(r *http.Request, kind objstore.Kind) bool {
	return func(r *http.Request, kind objstore.Kind) bool { return kind == of && strings.Contains(r.URL.Path, in) }
}

// A partition ends when another writer has taken over.
func TestAPartitionOfABucketsWriterHeals(t *testing.T) {
	p := newProxy(t, newServer(t))
	old := openBucket(t, p.open(t, func(c *Config) { c.Tries = 2 }), 0, 0)
	old.write(20)
	p.makes(func(w http.ResponseWriter, r *http.Request, _ objstore.Kind, _ int64, _ http.Handler) { reset(w, r) })
	require.Error(t, old.db.Set([]byte("last"), nil, kv.Sync))
	plain := p.server
	plain.endpoint = p.behind
	s := old.bucket(t).by(t, plain)
	w := openBucket(t, s, 20, 20)
	w.write(20)
	require.NoError(t, w.db.Compact(t.Context(), nil, nil))
	p.makes(nil)
	old.requireFenced()
	checkBucket(t, w.db, w.n, w.n)
	require.NoError(t, w.db.Close())
	require.NoError(t, openBucket(t, s, w.n, w.n).db.Close())
}

// A view whose files a collection deletes says that it is stale, until it is refreshed, and never gives other bytes.
func TestAReaderInABucketDuringCollections(t *testing.T) {
	s := newServer(t).open(t)
	w := openBucket(t, s, 0, 0)
	w.write(20)
	view, err := kv.OpenReadOnly("", bucketOptions(s))
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 6 {
			w.write(20)
		}
	}()
	for last, running := 20, true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		if err := view.Refresh(t.Context()); err != nil {
			require.ErrorIs(t, err, kv.ErrStale)
			continue
		}
		n, got, err := readBucket(view)
		if err != nil {
			require.ErrorIs(t, err, kv.ErrStale)
			continue
		}
		require.GreaterOrEqual(t, n, last)
		require.Equal(t, contents(n), got)
		last = n
	}
	for err = view.Refresh(t.Context()); err != nil; err = view.Refresh(t.Context()) {
		require.ErrorIs(t, err, kv.ErrStale)
	}
	checkBucket(t, view, w.n, w.n)
	require.NoError(t, view.Close())
	require.NoError(t, w.db.Close())
}

// A process is killed in an upload, in a part of one, before a publication, and when it has published and is not told.
func TestAWriterOfABucketIsKilled(t *testing.T) {
	p := newProxy(t, newServer(t))
	for name, c := range map[string]struct {
		is   func(r *http.Request, kind objstore.Kind) bool
		nth  int64
		big  bool
		pass bool // the server performs the request
	}{
		"in an upload":           {stalls(objstore.Put, "/sst/"), 2, false, false},
		"in a part of an upload": {func(r *http.Request, _ objstore.Kind) bool { return part(r) }, 2, true, false},
		"before a publication":   {stalls(objstore.PutIfAbsent, "/entry/"), 9, false, false},
		"after a publication":    {stalls(objstore.PutIfAbsent, "/entry/"), 9, false, true},
		"in a collection":        {stalls(objstore.Delete, "/"), 3, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := p.open(t)
			child := startWriter(t, writerJob{Endpoint: p.endpoint, Bucket: p.bucket,
				Prefix: strings.TrimSuffix(s.Prefix, "/"), Big: c.big}, p.own)
			var mu sync.Mutex
			seen, started := int64(0), make(chan struct{})
			p.makes(func(w http.ResponseWriter, r *http.Request, kind objstore.Kind, _ int64, pass http.Handler) {
				mu.Lock()
				if c.is(r, kind) {
					seen++
				}
				strike := seen >= c.nth
				mu.Unlock()
				if !strike {
					pass.ServeHTTP(w, r)
					return
				}
				if c.pass {
					pass.ServeHTTP(discard{http.Header{}}, r)
				}
				<-started
				_ = child.cmd.Process.Kill()
				panic(http.ErrAbortHandler)
			})
			err := child.cmd.Start()
			close(started)
			require.NoError(t, err)
			acknowledged := 0
			for child.lines.Scan() {
				_, err := fmt.Sscan(child.lines.Text(), &acknowledged)
				require.NoError(t, err)
			}
			require.Error(t, child.cmd.Wait())
			require.False(t, child.cmd.ProcessState.Exited(), "it failed by itself")
			p.makes(nil)
			db, err := kv.Open("", bucketOptions(s))
			require.NoError(t, err)
			if v, err := db.Get([]byte("big")); err == nil {
				require.True(t, bytes.Equal(big, v))
				require.NoError(t, db.Delete([]byte("big"), kv.Sync))
			}
			n := checkBucket(t, db, acknowledged, acknowledged+3)
			w := &bucketWriter{t: t, db: db, n: n}
			w.write(20)
			require.NoError(t, db.Close())
			require.NoError(t, openBucket(t, s, w.n, w.n).db.Close())
		})
	}
}
