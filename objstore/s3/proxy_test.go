package s3

import (
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/gatewaytest"
	"github.com/siftkv/siftkv/objstore"
)

// A proxy stands before a server, does what a test says, and counts the requests that reach it.
type proxy struct {
	server
	behind  string // the server's own URL
	forward http.Handler
	conns   atomic.Int64 // that clients have open

	mu      sync.Mutex
	trouble trouble
	counts  objstore.Counts
}

// A trouble serves the nth request of its kind, from 1 on. pass lets the server serve it.
type trouble func(w http.ResponseWriter, r *http.Request, kind objstore.Kind, nth int64, pass http.Handler)

// newProxy starts a proxy without troubles.
func newProxy(t testing.TB, v server) *proxy {
	target, err := url.Parse(v.endpoint)
	require.NoError(t, err)
	silent := log.New(io.Discard, "", 0) // of aborted requests
	p := &proxy{server: v, behind: v.endpoint, forward: &httputil.ReverseProxy{
		ErrorLog: silent,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // which is signed
		},
	}}
	front := httptest.NewUnstartedServer(p)
	front.Config.ErrorLog = silent
	front.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			p.conns.Add(1)
		case http.StateClosed, http.StateHijacked:
			p.conns.Add(-1)
		}
	}
	front.Start()
	t.Cleanup(front.Close)
	p.endpoint = front.URL
	return p
}

// makes sets the trouble for the requests to come, whose numbers begin with 1.
func (p *proxy) makes(trouble trouble) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trouble = trouble
	p.counts = objstore.Counts{}
}

// requests returns how many of a kind have come since makes.
func (p *proxy) requests(kind objstore.Kind) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[kind].Requests
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind := gatewaytest.KindOf(r)
	p.mu.Lock()
	p.counts[kind].Requests++
	nth, trouble := p.counts[kind].Requests, p.trouble
	p.mu.Unlock()
	if trouble == nil {
		p.forward.ServeHTTP(w, r)
		return
	}
	trouble(w, r, kind, nth, p.forward)
}

// on returns a trouble for the first n requests of a kind; the others pass.
func on(kind objstore.Kind, n int64, then http.HandlerFunc) trouble {
	return func(w http.ResponseWriter, r *http.Request, is objstore.Kind, nth int64, pass http.Handler) {
		if is == kind && nth <= n {
			then(w, r)
			return
		}
		pass.ServeHTTP(w, r)
	}
}

// refuse answers as S3 does.
func refuse(status int, code string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Message>said the proxy</Message></Error>")
	}
}

// lose lets the server serve a request, and drops the connection in place of the reply.
func (p *proxy) lose(_ http.ResponseWriter, r *http.Request) {
	p.forward.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// cut lets half of the reply's body through, and breaks the connection.
func (p *proxy) cut(w http.ResponseWriter, r *http.Request) {
	reply := httptest.NewRecorder()
	p.forward.ServeHTTP(reply, r)
	maps.Copy(w.Header(), reply.Header())
	w.Header().Set("Content-Length", strconv.Itoa(reply.Body.Len()))
	w.WriteHeader(reply.Code)
	_, _ = w.Write(reply.Body.Bytes()[:reply.Body.Len()/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// reset takes a part of an upload and resets the connection. The server never hears of it.
func reset(w http.ResponseWriter, r *http.Request) {
	_, _ = io.CopyN(io.Discard, r.Body, 1000)
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

// hang never replies.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client has gone
	<-r.Context().Done()
}
