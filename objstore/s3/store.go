package s3

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/siftkv/siftkv/objstore"
)

type store struct {
	client *s3.Client
	Options
	slots    chan struct{} // one for each request under way
	uplink   uplink
	answered atomic.Bool // the server has replied to a request
	closed   atomic.Bool

	mu     sync.Mutex     // closed is set, and aborts are added, under it
	aborts sync.WaitGroup // which Close waits for
}

// New returns a store over a client; it uses the client's endpoint, region, credentials and HTTP client. Retries,
// timeouts and checksums are the store's own, not the client's. The caller may use the client concurrently with the
// store and after it.
func New(client *s3.Client, o Options) (objstore.Store, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if client == nil {
		return nil, errors.New("s3: no client is given")
	}
	options := client.Options()
	if err := checkEndpoint(aws.ToString(options.BaseEndpoint)); err != nil {
		return nil, err
	}
	return &store{
		client: s3.New(options, ownSettings),
		slots:  make(chan struct{}, o.Requests), Options: o,
	}, nil
}

// ownSettings are those that the contract of a store depends on. Checksums beyond the signature's own of an upload
// make the SDK send bodies in chunks with trailers, which servers have stored as data, and ask for what many of
// them do not have.
func ownSettings(o *s3.Options) {
	o.Retryer = aws.NopRetryer{}
	o.RetryMaxAttempts = 0
	o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	o.DisableLogOutputChecksumValidationSkipped = true
	o.HTTPClient = &observer{o.HTTPClient}
}

// begin is what every call passes first.
func (s *store) begin(ctx context.Context, kind objstore.Kind, key string) (*call, error) {
	c := &call{s: s, kind: kind, key: key, meter: objstore.MeterFrom(ctx)}
	err := s.check(ctx)
	if err == nil && kind != objstore.List {
		if err = objstore.CheckKey(key); err == nil {
			err = objstore.CheckKey(s.Prefix + key) // the two may be too long together
		}
	}
	if err != nil {
		return c, &objstore.Error{Op: kind, Key: key, Err: err}
	}
	return c, nil
}

// check returns why nothing can be done.
func (s *store) check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.closed.Load() {
		return objstore.ErrClosed
	}
	return nil
}

func (s *store) Delete(ctx context.Context, key string) error {
	c, err := s.begin(ctx, objstore.Delete, key)
	if err != nil {
		return err
	}
	remove := func(ctx context.Context, _ *attempt) error {
		_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.Bucket, Key: s.full(key)})
		return err
	}
	f := c.repeat(ctx, request{kind: objstore.Delete, commits: true, send: remove})
	if f != nil && f.is(objstore.ErrNotExist) {
		return nil
	}
	return c.result(f)
}

// Close implements [objstore.Store]. It waits for uploads that failed to be cleared away, ten seconds at most.
func (s *store) Close() error {
	s.mu.Lock()
	s.closed.Store(true)
	s.mu.Unlock()
	s.aborts.Wait()
	return nil
}

// inBackground runs f concurrently with the caller while the store is open.
func (s *store) inBackground(f func()) {
	s.mu.Lock()
	open := !s.closed.Load()
	if open {
		s.aborts.Go(f)
	}
	s.mu.Unlock()
	if !open {
		f()
	}
}

func (s *store) full(key string) *string { return aws.String(s.Prefix + key) }
