package stress

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// A bucket is the object store that a round's store is in, as its process sees it.
type bucket struct {
	store    objstore.Store       // without troubles
	faults   *objstoretest.Faults // the same, with those of the plan
	options  objects.Config
	cache    string // the directory of the disk cache; it outlives processes
	flight   *flight
	journal  *journal
	orders   <-chan order
	troubles troubles

	expect atomic.Bool // another process may have taken over
	fenced atomic.Bool // it has, and the store says so
}

// Troubles are what goes wrong with requests.
type troubles struct {
	lost, late, refused, throttled, truncated, damaged int // one of so many first requests for an object; 0: none
	delay                                              time.Duration
	outageFrom, outageTo                               int64 // requests that all fail
	dieAt                                              int64 // request at which the process dies; 0: none
}

func drawTroubles(rng *rand.Rand, want featureSet) (t troubles) {
	for _, of := range []struct {
		field   *int
		feature string
	}{{&t.lost, "replies"}, {&t.late, "replies"}, {&t.refused, "requests"}, {&t.throttled, "requests"},
		{&t.truncated, "bodies"}, {&t.damaged, "bodies"}} {
		if n := []int{0, 0, 0, 3, 20}[rng.IntN(5)]; want[of.feature] {
			*of.field = n
		}
	}
	if rng.IntN(3) == 0 {
		t.delay = drawDelay(rng)
	}
	if rng.IntN(3) == 0 && want["requests"] {
		t.outageFrom = int64(20 + rng.IntN(200))
		t.outageTo = t.outageFrom + int64(1+rng.IntN(60))
	}
	return t
}

// rule is for objstoretest.Faults.
func (b *bucket) rule(p *plan) objstoretest.Rule {
	return func(c objstoretest.Call) (f objstoretest.Fault) {
		t := b.troubles
		if c.N == t.dieAt {
			dieNow()
		}
		if p.isLifted() {
			return f
		}
		one := func(of int) bool { return of > 0 && c.Nth%2 == 1 && c.Rand.IntN(of) == 0 }
		if t.delay > 0 {
			f.Delay = time.Duration(c.Rand.Int64N(int64(t.delay)))
		}
		isRead := c.Kind == objstore.Get || c.Kind == objstore.List
		struck := ""
		switch {
		case c.N >= t.outageFrom && c.N < t.outageTo, one(t.refused):
			struck, f.Outcome = "a request is lost", objstoretest.NotPerformed
		case one(t.throttled):
			struck, f.Outcome, f.Err = "throttled", objstoretest.NotPerformed, objstore.ErrThrottled
		case !isRead && one(t.lost):
			struck, f.Outcome = "a reply is lost", objstoretest.LostReply
		case !isRead && one(t.late):
			struck, f.Outcome = "a request is late", objstoretest.Late
		case c.Kind == objstore.Get && one(t.truncated):
			struck, f.Truncate = "a reply breaks off", true
		case c.Kind == objstore.Get && c.Nth == 1 && one(t.damaged):
			struck, f.Corrupt = "a reply is damaged", true
		}
		if struck != "" {
			b.journal.write(record{Kind: recordStrike, Name: struck})
		}
		if c.Rand.IntN(16) == 0 {
			go b.faults.Deliver()
		}
		return f
	}
}

// dieNow ends this process as kill -9 does.
func dieNow() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {}
}

func drawObjects(rng *rand.Rand, grace time.Duration) objects.Config {
	return objects.Config{
		LogInterval: []time.Duration{time.Millisecond, 20 * time.Millisecond, time.Hour}[rng.IntN(3)],
		LogBuffer:   []int{0, 4 << 10, 64 << 10}[rng.IntN(3)],
		CacheSize:   []int64{0, 2 << 20, 8 << 20}[rng.IntN(3)],
		Patience:    []time.Duration{time.Millisecond, 20 * time.Millisecond, 200 * time.Millisecond}[rng.IntN(3)],
		Grace:       grace,
	}
}

// use gives a setup the object store.
func (b *bucket) use(s *setup, store objstore.Store, cacheSize int64) {
	if b == nil {
		return
	}
	o := b.options
	o.Store, o.CacheSize = store, cacheSize
	s.opts.Objects, s.opts.SeparateAtCommit = &o, false
	s.harness.FS = localDisk{s.harness.FS, b.cache}
}

// objectErrors are those of requests, and of stores that have given up on them.
var objectErrors = []error{errBrokenOff, objstoretest.ErrInjected, objstoretest.ErrCut, objstore.ErrThrottled,
	objstore.ErrUnknown, io.ErrUnexpectedEOF}

// errBrokenOff stands for errors that say so. They match nothing: a reply that breaks off is no file that is too
// short.
var errBrokenOff = errors.New("the reply broke off")

func isAny(err error, targets ...error) bool {
	for _, t := range targets {
		if errors.Is(err, t) || errors.Is(t, errBrokenOff) && err != nil && strings.Contains(err.Error(), t.Error()) {
			return true
		}
	}
	return false
}

// overtaken reports whether an error is of a store that another process has, or may have, taken over.
func (r *round) overtaken(err error) bool {
	if r.bucket == nil || !r.bucket.expect.Load() {
		return false
	}
	if errors.Is(err, objects.ErrFenced) {
		r.bucket.fenced.Store(true)
		return true
	}
	return isAny(err, kv.ErrStale, objstore.ErrNotExist, fs.ErrNotExist) || isAny(err, objectErrors...)
}

// isFenced reports whether the store has said that another process has taken over.
func (r *round) isFenced() bool { return r.bucket != nil && r.bucket.fenced.Load() }

// hold tells what the store has when the process before has ended, and goes on from the state that this one is told.
func (b *bucket) hold(r *round) *Finding {
	b.journal.write(record{Kind: recordOpened})
	r.oracle.clock.micros.Store((<-b.orders).Micros)
	c, err := readAll(r.db, "", false)
	var again content
	if err == nil {
		again, err = readAll(r.db, "", true)
	}
	if err != nil {
		return found("unreadable", "in an object store: %v", err)
	}
	if diff := difference(c, again); diff != "" {
		return found("unreadable", "backwards: %s", diff)
	}
	if f := r.checkBlobs("in an object store"); f != nil {
		return f
	}
	b.journal.write(record{Kind: recordFound, Found: c})
	work, ok := <-b.orders
	if !ok || work.State == nil {
		return found("harness", "no state")
	}
	r.restore(work.State)
	go b.obey()
	return r.checkSlots()
}

// obey does what the process is told while it works.
func (b *bucket) obey() {
	for c := range b.orders {
		if c.Kind != orderHeal {
			b.expect.Store(true)
		}
		b.faults.Partition(c.Kind == orderPartition)
		b.journal.write(record{Kind: recordReady})
	}
}

// afterFence requires that a store that was taken over acknowledges nothing more. If it is read-only since something
// else has failed, it learns of that when it tries again, or else when it is closed.
func (b *bucket) afterFence(r *round) *Finding {
	b.faults.Deliver()
	late := func() error { return r.db.Set([]byte("late"), nil, kv.Sync) }
	err, end := late(), time.Now().Add(r.patience)
	unaware := func() bool { return errors.Is(err, kv.ErrReadOnly) && !errors.Is(err, objects.ErrFenced) }
	for unaware() && r.setup.resumes() && time.Now().Before(end) {
		time.Sleep(time.Millisecond)
		err = late()
	}
	switch {
	case unaware() && !r.setup.resumes():
	case !errors.Is(err, objects.ErrFenced):
		return found("fence", "a store that was taken over takes a write: %v", err)
	default:
		if err := r.db.Flush(context.Background()); !errors.Is(err, objects.ErrFenced) {
			return found("fence", "a store that was taken over flushes: %v", err)
		}
	}
	b.journal.write(record{Kind: recordFenced})
	return nil
}
