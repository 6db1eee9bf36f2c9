package gatewaytest

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
)

// KindOf returns what kind of request S3 bills it as.
func KindOf(r *http.Request) objstore.Kind {
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Has("list-type"):
		return objstore.List
	case r.Method == http.MethodGet:
		return objstore.Get
	case r.Method == http.MethodDelete:
		return objstore.Delete
	case r.Header.Get("If-None-Match") != "":
		return objstore.PutIfAbsent
	}
	return objstore.Put
}

// Counts are how many requests of each kind have reached a server.
type Counts [objstore.NumKinds]atomic.Int64

// Count puts a proxy before a server that counts its requests.
func Count(t testing.TB, server string) (endpoint string, counts *Counts) {
	t.Helper()
	target, err := url.Parse(server)
	require.NoError(t, err)
	counts = &Counts{}
	forward := &httputil.ReverseProxy{ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // which is signed
	}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		counts[KindOf(r)].Add(1)
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front.URL, counts
}
