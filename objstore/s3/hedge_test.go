package s3

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
)

// stall sends the header and a part of the body of a reply of ten bytes, and no more.
func stall(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", "10")
	w.Header().Set("Content-Range", "bytes 0-9/10")
	w.WriteHeader(http.StatusPartialContent)
	_, _ = io.WriteString(w, "#####")
	_ = http.NewResponseController(w).Flush()
	hang(w, r)
}

func TestHedgesOvertakeSlowReads(t *testing.T) {
	p := newProxy(t, newServer(t))
	for name, slow := range map[string]http.HandlerFunc{"no reply": hang, "a reply that stalls": stall} {
		s, c := counted(t, p, func(c *Config) { c.HedgeAfter = time.Millisecond })
		put(t, s, "k", "0123456789")
		before := c.Snapshot()
		p.makes(on(objstore.Get, 1, slow))
		got := make([]byte, 10)
		n, err := s.GetRange(t.Context(), "k", 0, got)
		require.NoError(t, err)
		require.Equal(t, "0123456789", string(got[:n]), name)
		count := c.Snapshot().Minus(before)[objstore.Get]
		require.EqualValues(t, 2, count.Requests, "%s: both are billed", name)
		require.EqualValues(t, 2, p.requests(objstore.Get), name)
		require.EqualValues(t, 1, count.Hedges, name)
		require.Zero(t, count.Retries, name)
		require.EqualValues(t, 1, count.Calls, name)

		p.makes(on(objstore.Get, 1, slow))
		_, err = s.GetRange(t.Context(), "absent", 0, got)
		require.ErrorIs(t, err, objstore.ErrNotExist, "%s: the hedge's answer is one too", name)
		p.makes(on(objstore.Get, 1, slow))
		_, err = s.GetRange(t.Context(), "k", 10, got)
		require.Equal(t, io.EOF, err, name)
	}
}

func TestAFailureWaitsForTheHedge(t *testing.T) {
	p := newProxy(t, newServer(t))
	s, c := counted(t, p, func(c *Config) { c.HedgeAfter, c.Tries = time.Millisecond, 1 })
	put(t, s, "k", "0123456789")
	both := make(chan struct{})
	p.makes(func(w http.ResponseWriter, r *http.Request, kind objstore.Kind, nth int64, pass http.Handler) {
		if kind == objstore.Get && nth == 1 {
			<-both
			refuse(http.StatusInternalServerError, "InternalError")(w, r)
			return
		}
		close(both)
		pass.ServeHTTP(w, r)
	})
	got := make([]byte, 10)
	_, err := s.GetRange(t.Context(), "k", 0, got)
	require.NoError(t, err)
	require.Equal(t, "0123456789", string(got))
	require.EqualValues(t, 1, c.Snapshot()[objstore.Get].Hedges)
}
