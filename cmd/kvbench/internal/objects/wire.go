package objects

import (
	"cmp"
	"context"
	"io"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/siftkv/siftkv/objstore"
)

// A wire is the way to an object store. It may be long: requests then take a delay. It notes which
// of them were under way together. It is safe for concurrent use.
type wire struct {
	objstore.Store

	mu       sync.Mutex
	delay    time.Duration
	requests []interval
}

// An interval is when a request was under way.
type interval struct{ begin, end time.Time }

// lengthen makes later requests take a delay, and forgets the earlier ones.
func (w *wire) lengthen(delay time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay, w.requests = delay, nil
}

// roundTrips returns the longest chain of requests, each of which began after the one before had
// ended, of those since lengthen. Without a delay it is 0.
func (w *wire) roundTrips() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortFunc(w.requests, func(a, b interval) int {
		return cmp.Or(a.end.Compare(b.end), a.begin.Compare(b.begin))
	})
	trips, last := 0, time.Time{}
	for _, r := range w.requests {
		if !r.begin.Before(last) { // of those that can follow, the one that ends first leaves most room
			trips, last = trips+1, r.end
		}
	}
	return trips
}

// begin waits out the delay and returns what to call when the request has ended; calling that
// again does nothing.
func (w *wire) begin(ctx context.Context) (end func()) {
	w.mu.Lock()
	delay := w.delay
	w.mu.Unlock()
	if delay == 0 {
		return func() {}
	}
	begin := time.Now()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done(): // the store says so
	}
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.requests = append(w.requests, interval{begin, time.Now()})
	})
}

func (w *wire) GetRange(ctx context.Context, key string, off int64, p []byte) (int, error) {
	if len(p) > 0 {
		defer w.begin(ctx)()
	}
	return w.Store.GetRange(ctx, key, off, p)
}

func (w *wire) Put(ctx context.Context, key string, r io.ReaderAt, size int64) error {
	defer w.begin(ctx)()
	return w.Store.Put(ctx, key, r, size)
}

func (w *wire) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	defer w.begin(ctx)()
	return w.Store.PutIfAbsent(ctx, key, body)
}

// List implements [objstore.Store]. The request ends with the first object: what the caller does
// with it comes after.
func (w *wire) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		end := w.begin(ctx)
		defer end()
		for o, err := range w.Store.List(ctx, prefix, after) {
			end()
			if !yield(o, err) {
				return
			}
		}
	}
}

func (w *wire) Delete(ctx context.Context, key string) error {
	defer w.begin(ctx)()
	return w.Store.Delete(ctx, key)
}
