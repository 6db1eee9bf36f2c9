package storecmd

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/siftkv/siftkv/kv"
)

// lastWrite returns the number of the last write of a store, which has the slot. In an object store, it is the last
// that is flushed.
func lastWrite(db *kv.DB, slot string) uint64 {
	for _, s := range db.Slots() {
		if s.Name == slot {
			return s.Acked + s.Behind
		}
	}
	return 0
}

// consume calls f with a view of a store, for the consumer of a slot: programs may write to the store meanwhile. If
// none does, prepare is called before, with the store opened for writing, which also recovers what a program has left.
func (d *Dir) consume(ctx context.Context, p *program, prepare, f func(db *kv.DB) error) error {
	done := false
	err := d.writeOrRead(ctx, p, prepare, func(db *kv.DB) error {
		done = true
		return f(db)
	})
	if err != nil || done {
		return err
	}
	return d.read(ctx, p, f)
}

// refreshed returns the view if its consumer has to refresh it: in an object store, no writer waits for that.
func (d *Dir) refreshed(db *kv.DB) *kv.DB {
	if d.Dir.remote() {
		return nil
	}
	return db
}

// refreshEvery is the time from one refresh to the next. A writer looks as often whether files may go that a view had.
const refreshEvery = 10 * time.Second

// refresh refreshes a view now and then, so that its writer frees disk space, until the context ends.
func refresh(ctx context.Context, db *kv.DB, every time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
			_ = db.Refresh(ctx) // it is tried again
		}
	}
}

// ackEvery is the time from one acknowledgement to the next.
const ackEvery = time.Second

var errAckDue = errors.New("an acknowledgement is due")

// A consumer hands the changes of a slot on, and acknowledges them once they are safe on the other side.
type consumer struct {
	db       *kv.DB // is refreshed; nil: no view is
	slot     *kv.Slot
	prefixes [][]byte
	bounded  bool   // it ends with a write, and not with its context alone
	until    uint64 // the write
	peek     bool   // acknowledge nothing
	// deliver hands a change on, and reports whether it was the last.
	deliver func(c *kv.Change) (last bool, err error)
	// makeDurable makes durable what was delivered.
	makeDurable func() error

	delivered uint64 // the last write that was
	acked     uint64
}

// run hands changes on. What was delivered is acknowledged once a second at most, and at the end, whatever that is.
func (c *consumer) run(ctx context.Context) error {
	if !c.bounded && c.db != nil {
		ctx, end := context.WithCancel(ctx)
		var refreshing sync.WaitGroup
		refreshing.Go(func() { refresh(ctx, c.db, refreshEvery) })
		defer refreshing.Wait()
		defer end()
	}
	c.delivered = c.slot.Position()
	c.acked = c.delivered
	if c.ended() {
		return nil
	}
	for {
		again, err := c.some(ctx)
		if failed := c.acknowledge(); failed != nil && errors.Is(err, context.Canceled) {
			return failed // an interrupt would hide it
		} else if err = errors.Join(err, failed); err != nil || !again {
			return err
		}
	}
}

func (c *consumer) ended() bool { return c.bounded && c.delivered >= c.until }

// some hands changes on until an acknowledgement is due, and nothing else comes.
func (c *consumer) some(ctx context.Context) (again bool, err error) {
	wait, end := context.WithCancelCause(ctx)
	defer end(nil)
	var due time.Time // of an acknowledgement; zero: nothing was delivered
	idle := time.AfterFunc(math.MaxInt64, func() { end(errAckDue) })
	defer idle.Stop()
	for change, err := range c.slot.Changes(wait, c.prefixes...) {
		if err != nil {
			if errors.Is(context.Cause(wait), errAckDue) && errors.Is(err, context.Canceled) {
				return true, nil
			}
			return false, err
		}
		last := false
		if !change.Empty() {
			if last, err = c.deliver(change); err != nil {
				return false, err
			}
		}
		c.delivered = change.Last()
		if last || c.ended() {
			return false, nil
		}
		switch now := time.Now(); {
		case due.IsZero():
			due = now.Add(ackEvery)
			idle.Reset(2 * ackEvery) // the loop waits for a change by then
		case now.After(due):
			if err := c.acknowledge(); err != nil {
				return false, err
			}
			due = now.Add(ackEvery)
			idle.Reset(2 * ackEvery)
		}
	}
	return false, nil
}

// acknowledge makes durable what was delivered, and tells the slot.
func (c *consumer) acknowledge() error {
	if err := c.makeDurable(); err != nil || c.peek || c.delivered <= c.acked {
		return err
	}
	if err := c.slot.Ack(c.delivered); err != nil {
		return err
	}
	c.acked = c.delivered
	return nil
}
