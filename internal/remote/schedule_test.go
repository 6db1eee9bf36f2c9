package remote

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

// A schedule decides, by a seed, in which order the calls of several clients reach a store, and what becomes of each.
// It runs in a bubble: every call waits until all clients wait, and then one is let through. A second passes
// with each.
type schedule struct {
	t    *testing.T
	rng  *rand.Rand
	mem  objstore.Store
	mood mood

	mu      sync.Mutex
	waiting []*heldCall
	clients []*client
	running int
}

// A mood is how often things go wrong, in percent.
type mood struct{ lost, late, throttled, lag, cancel, sleep int }

// lag is for how long a listing may not show an object, and grace how long entries are kept: longer.
const (
	lag   = 20 * time.Second
	grace = 25 * time.Second
)

func newSchedule(t *testing.T, seed uint64) *schedule {
	rng := rand.New(rand.NewPCG(seed, racebuild.Slowdown)) // other schedules under the race detector
	pick := func() int { return rng.IntN(3) * rng.IntN(15) }
	return &schedule{t: t, rng: rng, mem: objstore.NewMem(), mood: mood{pick(), pick(), pick(), 3 * pick(), pick() / 5,
		pick() / 3}}
}

// A client is a process with a connection to the store.
type client struct {
	objstore.Store // what the client calls; it comes out at faults
	sc             *schedule
	n              int
	rng            *rand.Rand // for what it does
	faults         *objstoretest.Faults
	asleep         int // so many steps
	stop           context.CancelFunc
}

// A heldCall waits to be let through.
type heldCall struct {
	client *client
	name   string
	pass   chan struct{}
}

// start adds a client that does something until the schedule ends, again and again.
func (sc *schedule) start(work func(ctx context.Context, c *client)) {
	c := &client{sc: sc, n: len(sc.clients), rng: rand.New(rand.NewPCG(sc.rng.Uint64(), 2))}
	c.faults = objstoretest.NewFaults(sc.mem, uint64(c.n))
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
		work(sc.t.Context(), c)
	}()
}

// rule decides about a call when it is let through.
func (sc *schedule) rule(call objstoretest.Call) (f objstoretest.Fault) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	chance := func(percent int) bool { return sc.rng.IntN(100) < percent }
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
func (sc *schedule) hidden() (n int) {
	since := time.Now().Add(-time.Duration(sc.rng.Int64N(int64(lag))))
	for o, err := range sc.mem.List(context.Background(), "", "") {
		if err == nil && o.ModTime.After(since) {
			n++
		}
	}
	return n
}

// step lets one call through, and reports whether there was any client left.
func (sc *schedule) step() bool {
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
		if sc.rng.IntN(400) < sc.mood.sleep {
			c.asleep = sc.rng.IntN(300)
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
	next := awake[sc.rng.IntN(len(awake))]
	sc.waiting = slices.DeleteFunc(sc.waiting, func(h *heldCall) bool { return h == next })
	cancel := sc.rng.IntN(100) < sc.mood.cancel && next.client.stop != nil
	deliver := sc.rng.IntN(20) == 0
	sc.mu.Unlock()
	if cancel {
		next.client.stop()
	}
	if deliver {
		next.client.faults.Deliver() // of a client that may be another's predecessor
	}
	close(next.pass)
	return true
}

// run goes on until all clients have ended.
func (sc *schedule) run() {
	for sc.step() {
		continue
	}
	for _, c := range sc.clients {
		c.faults.Deliver()
	}
}

// held is a store that holds calls up.
type held struct{ c *client }

func (s held) hold(kind objstore.Kind, key string) {
	h := &heldCall{client: s.c, name: fmt.Sprint(kind, " ", key), pass: make(chan struct{})}
	s.c.sc.mu.Lock()
	s.c.sc.waiting = append(s.c.sc.waiting, h)
	s.c.sc.mu.Unlock()
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
