package s3

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/siftkv/siftkv/objstore"
)

// An attempt is what the network saw of one try. It reaches the HTTP client in the context of the try.
type attempt struct {
	begun    atomic.Bool  // the SDK had a request to send
	sent     atomic.Int64 // requests whose header went out; net/http repeats some itself
	progress              // of the object's bytes, received or sent

	replied  atomic.Bool            // the server has, with any status
	endpoint atomic.Pointer[string] // its host, from the request

	// secrets are what the request said of its credentials. They are read after the try.
	secrets atomic.Pointer[[]string]
}

type attemptKey struct{}

// An observer notes in the attempt what becomes of a request.
type observer struct{ next s3.HTTPClient }

func (o *observer) Do(r *http.Request) (*http.Response, error) {
	a, _ := r.Context().Value(attemptKey{}).(*attempt)
	if a == nil {
		return o.next.Do(r)
	}
	a.begun.Store(true)
	a.endpoint.Store(&r.URL.Host)
	secrets := secretsOf(r)
	a.secrets.Store(&secrets)
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		WroteHeaders: func() { a.sent.Add(1) },
	}))
	if a.all != nil && r.ContentLength > 0 {
		r.Body = &countedBody{r.Body, &a.progress}
	}
	reply, err := o.next.Do(r)
	if err == nil {
		a.replied.Store(true)
		if a.sent.Load() == 0 {
			a.sent.Add(1) // by a client that is not net/http's
		}
	}
	return reply, err
}

// host returns the host, with its port, that the request went to.
func (a *attempt) host() string {
	if host := a.endpoint.Load(); host != nil {
		return *host
	}
	return "the server"
}

// A request is one that may be tried several times.
type request struct {
	kind    objstore.Kind
	upload  bool  // its body is an object's, or a part of one
	commits bool  // the object is there, or gone, when it was performed
	joins   int64 // bytes of parts that the server puts together before it replies
	once    bool  // it is not repeated when it may have been performed

	quit <-chan struct{} // it is not repeated when this is closed; nil: never

	// send performs one try. The attempt is for it to count the bytes that it receives.
	send func(context.Context, *attempt) error
}

// try performs one try and counts it, as a hedge or retry if note says so.
func (c *call) try(ctx context.Context, r request, note objstore.Count) *failure {
	select {
	case c.s.slots <- struct{}{}:
		defer func() { <-c.s.slots }()
	case <-ctx.Done():
		return ended(ctx, false)
	}
	if ctx.Err() != nil {
		return ended(ctx, false)
	}
	a := new(attempt)
	if r.upload {
		a.all = &c.s.uplink.sent
	}
	watched, end := a.watch(ctx, c.s.Timeout+time.Duration(r.joins>>20)*time.Second)
	defer end()
	f := judge(ctx, a, r.send(context.WithValue(watched, attemptKey{}, a), a))
	if a.replied.Load() {
		c.s.answered.Store(true)
	}
	if sent := a.sent.Load(); sent > 0 {
		c.sent.Add(sent)
		note.Requests = sent
		note.Bytes = a.bytes.Load()
		note.Retries += sent - 1
		if f != nil && f.throttled {
			note.Throttled = 1
		}
		c.meter.Add(r.kind, note)
	}
	return f
}
