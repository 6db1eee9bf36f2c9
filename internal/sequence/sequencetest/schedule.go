// Package sequencetest helps tests of what several clients do in one object store: schedules of their calls, and the
// requests that they send.
package sequencetest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/siftkv/siftkv/internal/racebuild"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// A Schedule decides, by a seed, in which order the calls of several clients reach a store, and what becomes of each.
// It runs in a bubble: every call waits until all clients wait, and then one is let through. A second passes
// with each.
type Schedule struct {
	T    *testing.T
	Rng  *rand.Rand
	Mem  objstore.Store
	mood mood

	mu      sync.Mutex
	waiting []*heldCall
	clients []*Client
	running int
}

// A mood is how often things go wrong, in percent.
type mood struct{ lost, late, throttled, lag, cancel, sleep int }

// Lag is for how long a listing may not show an object, and Grace how long entries are kept: longer.
const (
	Lag   = 20 * time.Second
	Grace = 25 * time.Second
)

// New returns a schedule by a seed, of an empty store.
func New(t *testing.T, seed uint64) *Schedule {
	rng := rand.New(rand.NewPCG(seed, racebuild.Slowdown)) // other schedules under the race detector
	pick := func() int { return rng.IntN(3) * rng.IntN(15) }
	return &Schedule{T: t, Rng: rng, Mem: objstore.NewMem(), mood: mood{pick(), pick(), pick(), 3 * pick(), pick() / 5,
		pick() / 3}}
}

// A Client is a process with a connection to the store.
type Client struct {
	objstore.Store // what the client calls; it comes out at faults
	Schedule       *Schedule
	n              int
	Rng            *rand.Rand // for what it does
	faults         *objstoretest.Faults
	asleep         int // so many steps
	Stop           context.CancelFunc
}

// A heldCall waits to be let through.
type heldCall struct {
	client *Client
	name   string
	pass   chan struct{}
}

// Start adds a client that does something until the schedule ends, again and again.
func (sc *Schedule) Start(work func(ctx context.Context, c *Client)) {
	c := &Client{Schedule: sc, n: len(sc.clients), Rng: rand.New(rand.NewPCG(sc.Rng.Uint64(), 2))}
	c.faults = objstoretest.NewFaults(sc.Mem, uint64(c.n))
	c.faults.Inject(sc.rule)
	c.Store = held{c}
	sc.clients = append(sc.clients, c)
	sc.running++
	go func() {
		defer func() { // also when the test has failed
			sc.mu.Lock()
			defer sc.mu.Unlock()
			sc.running--
		}()
		work(sc.T.Context(), c)
	}()
}

// rule decides about a call when it is let through.
func (sc *Schedule) rule(call objstoretest.Call) (f objstoretest.Fault) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	chance := func(percent int) bool { return sc.Rng.IntN(100) < percent }
	switch {
	case call.Kind == objstore.List:
		if chance(sc.mood.lag) {
			f.Stale = sc.hidden()
		}
	case call.Kind == objstore.Get:
		f.Corrupt = call.Nth%2 == 1 && chance(sc.mood.throttled/10) // a second try is good
		f.Truncate = chance(sc.mood.lost / 10)
	case chance(sc.mood.throttled):
		f.Outcome, f.Err = objstoretest.NotPerformed, objstore.ErrThrottled
	case chance(sc.mood.lost):
		f.Outcome = objstoretest.LostReply
	case chance(sc.mood.late):
		f.Outcome = objstoretest.Late
	}
	return f
}

// hidden returns how many objects a listing does not show.
func (sc *Schedule) hidden() (n int) {
	since := time.Now().Add(-time.Duration(sc.Rng.Int64N(int64(Lag))))
	for o, err := range sc.Mem.List(context.Background(), "", "") {
		if err == nil && o.ModTime.After(since) {
			n++
		}
	}
	return n
}

// step lets one call through, and reports whether there was any client left.
func (sc *Schedule) step() bool {
	synctest.Wait()
	time.Sleep(time.Second)
	synctest.Wait()
	sc.mu.Lock()
	if sc.running == 0 {
		sc.mu.Unlock()
		return false
	}
	for _, c := range sc.clients {
		c.asleep = max(c.asleep-1, 0)
		if sc.Rng.IntN(400) < sc.mood.sleep {
			c.asleep = sc.Rng.IntN(300)
		}
	}
	awake := slices.DeleteFunc(slices.Clone(sc.waiting), func(h *heldCall) bool { return h.client.asleep > 0 })
	if len(awake) == 0 {
		sc.mu.Unlock()
		return true
	}
	slices.SortFunc(awake, func(a, b *heldCall) int {
		return cmp.Or(cmp.Compare(a.client.n, b.client.n), cmp.Compare(a.name, b.name))
	})
	next := awake[sc.Rng.IntN(len(awake))]
	sc.waiting = slices.DeleteFunc(sc.waiting, func(h *heldCall) bool { return h == next })
	cancel := sc.Rng.IntN(100) < sc.mood.cancel && next.client.Stop != nil
	deliver := sc.Rng.IntN(20) == 0
	sc.mu.Unlock()
	if cancel {
		next.client.Stop()
	}
	if deliver {
		next.client.faults.Deliver() // of a client that may be another's predecessor
	}
	close(next.pass)
	return true
}

// Run goes on until all clients have ended.
func (sc *Schedule) Run() {
	for sc.step() {
		continue
	}
	for _, c := range sc.clients {
		c.faults.Deliver()
	}
}

// held is a store that holds calls up.
type held struct{ c *Client }

func (s held) hold(kind objstore.Kind, key string) {
	h := &heldCall{client: s.c, name: fmt.Sprint(kind, " ", key), pass: make(chan struct{})}
	s.c.Schedule.mu.Lock()
	s.c.Schedule.waiting = append(s.c.Schedule.waiting, h)
	s.c.Schedule.mu.Unlock()
	<-h.pass
}

func (s held) GetRange(ctx context.Context, key string, off int64, p []byte) (int, error) {
	s.hold(objstore.Get, key)
	return s.c.faults.GetRange(ctx, key, off, p)
}

func (s held) Put(ctx context.Context, key string, r io.ReaderAt, size int64) error {
	s.hold(objstore.Put, key)
	return s.c.faults.Put(ctx, key, r, size)
}

func (s held) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	s.hold(objstore.PutIfAbsent, key)
	return s.c.faults.PutIfAbsent(ctx, key, body)
}

func (s held) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		s.hold(objstore.List, prefix)
		s.c.faults.List(ctx, prefix, after)(yield)
	}
}

func (s held) Delete(ctx context.Context, key string) error {
	s.hold(objstore.Delete, key)
	return s.c.faults.Delete(ctx, key)
}

func (s held) Close() error { return nil }
