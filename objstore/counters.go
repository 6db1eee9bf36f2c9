package objstore

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"

	"github.com/siftkv/siftkv/internal/requests"
)

// A Count is what was counted of one kind of request: Calls of the method of Store, Requests that were sent and are
// billed, Bytes of objects, Retries, Hedges, and requests and calls that failed.
type Count = requests.Count

// Counts are the counts of all kinds, indexed by [Kind]: counts[objstore.Get].Requests. Minus returns what was counted
// since an earlier snapshot, and Total the sum over all kinds.
type Counts = requests.Counts

// Counters count what a store does; see [WithCounters]. The zero value is ready. They are safe for concurrent use,
// and must not be copied.
type Counters struct {
	mu     sync.Mutex
	counts Counts
}

// Snapshot returns the counts as they were at one moment.
func (c *Counters) Snapshot() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

func (c *Counters) add(kind Kind, d Count) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[kind] = c.counts[kind].Plus(d, 1)
}

// pageSize is how many objects a page of a listing has in S3, GCS and Azure.
const pageSize = 1000

// A counted is a Store.
type counted struct {
	s Store
	c *Counters
}

// WithCounters returns s with its calls and requests counted in c. Several stores may share c, and counters may be put
// around counters. If s reports its requests to the call's [Meter], it counts those, which are billed. Else every call
// counts as one request (a listing as one for each thousand objects), unless it failed without any: for an invalid key
// or buffer, a closed store, or an ended context. Closing it closes s.
func WithCounters(s Store, c *Counters) Store { return &counted{s, c} }

func (s *counted) GetRange(ctx context.Context, key string, off int64, p []byte) (int, error) {
	ctx, m := withMeter(ctx, s.c)
	n, err := s.s.GetRange(ctx, key, off, p)
	requests := int64(1)
	if len(p) == 0 {
		requests = 0
	}
	m.end(Get, Count{Requests: requests, Bytes: int64(n)}, err)
	return n, err
}

func (s *counted) Put(ctx context.Context, key string, r io.ReaderAt, size int64) error {
	ctx, m := withMeter(ctx, s.c)
	err := s.s.Put(ctx, key, r, size)
	m.end(Put, Count{Requests: 1, Bytes: size}, err)
	return err
}

func (s *counted) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	ctx, m := withMeter(ctx, s.c)
	err := s.s.PutIfAbsent(ctx, key, body)
	m.end(PutIfAbsent, Count{Requests: 1, Bytes: int64(len(body))}, err)
	return err
}

func (s *counted) List(ctx context.Context, prefix, after string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		ctx, m := withMeter(ctx, s.c)
		listed, failure := int64(0), error(nil)
		for o, err := range s.s.List(ctx, prefix, after) {
			if failure = err; err == nil {
				listed++
			}
			if !yield(o, err) {
				break
			}
		}
		m.end(List, Count{Requests: 1 + max(listed-1, 0)/pageSize}, failure)
	}
}

func (s *counted) Delete(ctx context.Context, key string) error {
	ctx, m := withMeter(ctx, s.c)
	err := s.s.Delete(ctx, key)
	m.end(Delete, Count{Requests: 1}, err)
	return err
}

func (s *counted) Close() error { return s.s.Close() }

// isAnswer reports whether an error is what a working store says of its contents.
func isAnswer(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, ErrNotExist) || errors.Is(err, ErrExists)
}
