package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// A client sends requests and counts what becomes of them.
type client struct {
	base    string
	http    *http.Client
	timeout time.Duration
	tally   *tally
	shown   shown
}

// A request is one request and what its answer must be.
type request struct {
	kind         Kind
	method, path string
	body         string    // JSON, or nothing
	since        time.Time // when it was due; zero: when it is sent
	// check returns an error if the answer is not true. An answer that says "not now"
	// tells nothing, and is not checked.
	check func(a answer) error
}

// An answer is what the service said.
type answer struct {
	status int
	body   []byte
}

// maxBody bounds what is read of an answer, in bytes.
const maxBody = 1 << 20

// do sends a request. It reports whether the answer is true: if not, the visitor leaves.
func (c *client) do(ctx context.Context, r request) bool {
	if r.since.IsZero() {
		r.since = time.Now()
	}
	o := outcome{kind: r.kind}
	a, err := c.send(ctx, r)
	o.took, o.status = time.Since(r.since), a.status
	switch {
	case err != nil:
		o.failed = fmt.Errorf("%s %s: %w", r.method, r.path, err)
	case a.status >= 500 || a.status == http.StatusTooManyRequests:
		o.failed = fmt.Errorf("%s %s: status %d: %.200s", r.method, r.path, a.status, bytes.TrimSpace(a.body))
	default:
		if err := r.check(a); err != nil {
			o.wrong = fmt.Errorf("%s %s: status %d: %w", r.method, r.path, a.status, err)
		}
	}
	c.tally.add(o)
	return o.failed == nil && o.wrong == nil
}

// send returns the answer of the service, or an error if there is none.
func (c *client) send(ctx context.Context, r request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, bytes.NewBufferString(r.body))
	if err != nil {
		return answer{}, err
	}
	if r.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(req)
	if err != nil {
		if of, ok := errors.AsType[*url.Error](err); ok {
			err = of.Err // without the method and the URL, which the caller says
		}
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return answer{}, fmt.Errorf("read the answer: %w", err)
	}
	return answer{status: response.StatusCode, body: body}, nil
}
