package s3

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
)

// counted returns a store by way of a proxy, with what it counts.
func counted(t *testing.T, p *proxy, change ...func(*Config)) (objstore.Store, *objstore.Counters) {
	c := new(objstore.Counters)
	return objstore.WithCounters(p.open(t, change...), c), c
}

func put(t *testing.T, s objstore.Store, key, body string) {
	require.NoError(t, s.Put(t.Context(), key, bytes.NewReader([]byte(body)), int64(len(body))))
}

func TestStormsOfRefusals(t *testing.T) {
	p := newProxy(t, newServer(t))
	for name, storm := range map[string]http.HandlerFunc{
		"slow down":         refuse(http.StatusServiceUnavailable, "SlowDown"),
		"too many requests": refuse(http.StatusTooManyRequests, "TooManyRequests"),
		"busy":              refuse(http.StatusServiceUnavailable, "ServiceUnavailable"),
	} {
		t.Run(name, func(t *testing.T) {
			s, c := counted(t, p)
			put(t, s, "there", "content")
			calls := map[objstore.Kind]func(key string) error{
				objstore.Get: func(string) error {
					_, err := s.GetRange(t.Context(), "there", 0, make([]byte, 7))
					return err
				},
				objstore.Put: func(key string) error {
					return s.Put(t.Context(), key, bytes.NewReader([]byte("body")), 4)
				},
				objstore.PutIfAbsent: func(key string) error {
					return s.PutIfAbsent(t.Context(), key, []byte("body"))
				},
				objstore.Delete: func(key string) error { return s.Delete(t.Context(), key) },
				objstore.List: func(string) error {
					for _, err := range s.List(t.Context(), "", "") {
						if err != nil {
							return err
						}
					}
					return nil
				},
			}
			for kind, call := range calls {
				before := c.Snapshot()
				p.makes(on(kind, 7, storm))
				require.NoError(t, call("short-"+kind.String()), "%v outlives seven refusals", kind)
				got := c.Snapshot().Minus(before)[kind]
				got.Bytes = 0
				require.Equal(t, objstore.Count{Calls: 1, Requests: 8, Retries: 7, Throttled: 7}, got, "%v", kind)

				p.makes(on(kind, 8, storm))
				err := call("long-" + kind.String())
				require.ErrorIs(t, err, objstore.ErrThrottled, "%v", kind)
				require.NotErrorIs(t, err, objstore.ErrUnknown, "%v was refused each time", kind)
				require.EqualValues(t, 8, p.requests(kind), "tries of %v are bounded", kind)
			}
			for o, err := range s.List(t.Context(), "long-", "") {
				t.Errorf("%v is there (%v), although each try was refused", o, err)
			}
		})
	}
}

func TestServersThatFailForAMoment(t *testing.T) {
	p := newProxy(t, newServer(t))
	s, c := counted(t, p)
	for name, trouble := range map[string]http.HandlerFunc{
		"500":   refuse(http.StatusInternalServerError, "InternalError"),
		"502":   refuse(http.StatusBadGateway, ""),
		"503":   refuse(http.StatusServiceUnavailable, ""),
		"409":   refuse(http.StatusConflict, "OperationAborted"),
		"reset": reset,
		"lost":  p.lose,
	} {
		p.makes(on(objstore.Put, 3, trouble))
		before := c.Snapshot()
		put(t, s, name, "content of "+name)
		got := c.Snapshot().Minus(before)[objstore.Put]
		require.EqualValues(t, 4, got.Requests, name)
		require.EqualValues(t, 3, got.Retries, name)
		require.Equal(t, "content of "+name, content(t, s, name))

		p.makes(on(objstore.Put, 100, trouble))
		err := s.Put(t.Context(), name+"-for-ever", bytes.NewReader([]byte("x")), 1)
		require.ErrorIs(t, err, objstore.ErrUnknown, name)

		p.makes(on(objstore.Delete, 1, trouble))
		require.NoError(t, s.Delete(t.Context(), name))
		p.makes(on(objstore.Delete, 100, trouble))
		require.ErrorIs(t, s.Delete(t.Context(), name), objstore.ErrUnknown, name)
	}
}

func TestTruncatedBodies(t *testing.T) {
	p := newProxy(t, newServer(t))
	s, c := counted(t, p)
	body := bytes.Repeat([]byte("0123456789"), 10_000)
	put(t, s, "k", string(body))
	for _, off := range []int64{0, 50_000, -100_000, -70} {
		p.makes(on(objstore.Get, 2, p.cut))
		before := c.Snapshot()
		got := make([]byte, 100_000)
		n, err := s.GetRange(t.Context(), "k", off, got)
		want := body
		if off != 0 {
			want = body[(off+100_000)%100_000:]
		}
		if len(want) < len(got) {
			require.Equal(t, io.EOF, err)
		} else {
			require.NoError(t, err)
		}
		require.True(t, bytes.Equal(want, got[:n]))
		counts := c.Snapshot().Minus(before)[objstore.Get]
		require.EqualValues(t, 2, counts.Retries)
		require.EqualValues(t, 2*len(want), counts.Bytes, "half of it twice, and all of it")

		p.makes(on(objstore.Get, 100, p.cut))
		_, err = s.GetRange(t.Context(), "k", off, got)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.NotErrorIs(t, err, io.EOF)
		require.NotErrorIs(t, err, objstore.ErrUnknown)
	}
	p.makes(on(objstore.List, 2, p.cut))
	listed := 0
	for _, err := range s.List(t.Context(), "", "") {
		require.NoError(t, err)
		listed++
	}
	require.Equal(t, 1, listed)
}

func TestTriesHaveATimeLimit(t *testing.T) {
	p := newProxy(t, newServer(t))
	patient := p.open(t, func(c *Config) { c.Timeout, c.Tries = 300*time.Millisecond, 1000 })
	p.makes(on(objstore.Get, 2, hang))
	_, err := patient.GetRange(t.Context(), "k", 0, make([]byte, 1))
	require.ErrorIs(t, err, objstore.ErrNotExist, "a later try had an answer")

	s := p.open(t, func(c *Config) { c.Timeout, c.Tries = 300*time.Millisecond, 3 })
	p.makes(on(objstore.Put, 100, hang))
	err = s.Put(t.Context(), "k", bytes.NewReader([]byte("x")), 1)
	require.ErrorIs(t, err, objstore.ErrUnknown)
	require.NotErrorIs(t, err, context.DeadlineExceeded, "the caller's context has no deadline")
	require.LessOrEqual(t, p.requests(objstore.Put), int64(3))

	p.makes(on(objstore.PutIfAbsent, 100, hang))
	require.ErrorIs(t, s.PutIfAbsent(t.Context(), "k", nil), objstore.ErrUnknown)
	require.LessOrEqual(t, p.requests(objstore.PutIfAbsent), int64(1))
}

func TestContextsThatEnd(t *testing.T) {
	p := newProxy(t, newServer(t))
	s := p.open(t, func(c *Config) { c.Pause = time.Hour })
	for _, kind := range []objstore.Kind{objstore.Get, objstore.Put, objstore.PutIfAbsent, objstore.Delete} {
		for name, cause := range map[string]http.HandlerFunc{
			"under way": hang, "before the next try": refuse(http.StatusTooManyRequests, "SlowDown"),
		} {
			ctx, cancel := context.WithCancel(t.Context())
			p.makes(on(kind, 100, func(w http.ResponseWriter, r *http.Request) {
				cancel()
				cause(w, r)
			}))
			var err error
			switch kind {
			case objstore.Get:
				_, err = s.GetRange(ctx, "k", 0, make([]byte, 1))
			case objstore.Put:
				err = s.Put(ctx, "k", bytes.NewReader([]byte("x")), 1)
			case objstore.PutIfAbsent:
				err = s.PutIfAbsent(ctx, "k", []byte("x"))
			case objstore.Delete:
				err = s.Delete(ctx, "k")
			}
			require.ErrorIs(t, err, context.Canceled, "%v %s", kind, name)
			if name == "under way" {
				assert.Equal(t, kind != objstore.Get, isUnknown(err), "%v: %v", kind, err)
			}
		}
	}
}

func TestServersThatAreNotThere(t *testing.T) {
	v := newServer(t)
	v.endpoint = "http://127.0.0.1:1"
	s, c := counted(t, &proxy{server: v})
	err := s.PutIfAbsent(t.Context(), "k", nil)
	require.ErrorContains(t, err, "connection refused")
	require.NotErrorIs(t, err, objstore.ErrUnknown, "nothing was sent")
	require.Zero(t, c.Snapshot()[objstore.PutIfAbsent].Requests, "what was not sent is not billed")
}

func TestABucketThatIsNotThereIsNotAnObjectThatIsNotThere(t *testing.T) {
	v := newServer(t)
	v.bucket = "no-such-bucket-of-the-tests"
	s := v.open(t)
	_, err := s.GetRange(t.Context(), "k", 0, make([]byte, 1))
	require.ErrorContains(t, err, "NoSuchBucket")
	require.NotErrorIs(t, err, objstore.ErrNotExist)
	require.NotErrorIs(t, err, io.EOF)
}
