package stress

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/kv"
)

// An elsewhere is the process of a consumer that is not in the writer's process. It has a view of the directory, goes
// on while writers are closed or killed, and ends when the power is cut.
type elsewhere struct {
	db      *kv.DB
	session *Session
	plan    atomic.Pointer[plan] // of the round
	durable uint64               // the last write that it knows to be
}

// beginElsewhere starts a process beside the writer.
func beginElsewhere(w *worker) (*elsewhere, error) {
	e := &elsewhere{}
	e.plan.Store(w.r.plan)
	e.session = w.r.disk.MountBeside(func(c Call) Outcome { return e.plan.Load().decide(c) })
	s := drawSetup(w.rng)
	s.harness.FS = e.session
	*harness.Of(&s.opts) = s.harness
	s.opts.Clock = w.r.oracle.clock.time
	var err error
	if e.db, err = kv.OpenReadOnly(storeDir, &s.opts); err != nil {
		e.session.Unmount()
		return nil, err
	}
	return e, nil
}

// end closes the view, which leaves no file open.
func (e *elsewhere) end() *Finding {
	defer e.session.Unmount()
	err := e.db.Close()
	names := e.session.OpenFiles()
	switch {
	case e.gone():
	case err != nil && !documented(err):
		return found("undocumented error", "Close of a view: %v", err)
	case err == nil && len(names) > 0:
		return found("leak", "after Close of a view these files are open: %v", names)
	}
	return nil
}

func (e *elsewhere) gone() bool {
	select {
	case <-e.session.Gone():
		return true
	default:
		return false
	}
}

// patienceElsewhere is how long a worker waits for what its writer says to be durable within a second.
const patienceElsewhere = 20 * time.Millisecond

// waiting returns the context of a call for the consumer, which waits for the writer if it is in another process.
func (c *consumer) waiting(patience time.Duration) (context.Context, context.CancelFunc) {
	if c.away == nil {
		return context.WithCancel(context.Background())
	}
	return context.WithTimeout(context.Background(), patience)
}

// open opens the slot in the writer's process, or in another, which may be there already.
func (c *consumer) open(w *worker) (slot *kv.Slot, err error) {
	if w.r.bucket != nil || w.rng.IntN(2) == 0 {
		return w.db.OpenSlot(c.name)
	}
	if c.away, err = beginElsewhere(w); err != nil {
		return nil, err
	}
	if slot, err = c.away.db.OpenSlot(c.name); err != nil {
		c.detach()
		return nil, err
	}
	w.r.slot("opened elsewhere")
	return slot, nil
}

// beginAgain has the consumer replace its replica by a new snapshot, which the slot's changes follow. With the
// patience of the round the snapshot must come.
func (c *consumer) beginAgain(w *worker, patience time.Duration) *Finding {
	db := w.db
	if c.away != nil {
		db = c.away.db
	}
	ctx, cancel := c.waiting(patience)
	defer cancel()
	snap, err := db.SnapshotOf(ctx, c.slot)
	if errors.Is(err, context.DeadlineExceeded) && patience == w.r.patience {
		return found("slot", "%s gets no snapshot elsewhere when all is quiet: %v", c.name, err)
	}
	if err != nil {
		return c.failed(w, err)
	}
	copied, f := c.copy(w, snap)
	if err := snap.Close(); f == nil {
		f = w.allow(err)
	}
	if c.now.position != c.slot.Position() {
		c.detach() // nothing has the changes up to there
		return f
	}
	if copied {
		c.prove()
		w.r.slot("begun again")
	}
	return f
}

// prove notes that the process knows that all is durable which the consumer has.
func (c *consumer) prove() {
	if c.away != nil {
		c.away.durable = c.now.position
	}
}

// refresh brings the view of a consumer in another process up to date.
func (c *consumer) refresh(w *worker) *Finding {
	if c.away == nil || w.rng.IntN(8) > 0 {
		return nil
	}
	return c.failed(w, c.away.db.Refresh(context.Background()))
}

// isOlder reports whether a content lacks writes that the store had when it was last checked.
func (o *oracle) isOlder(c content) bool {
	for _, k := range o.spaces {
		is, _ := parseMark(c[k.markKey()])
		v, _ := k.base.get(k.markKey(), 0)
		if was, _ := parseMark(v); is < was {
			return true
		}
	}
	return false
}

// lacks returns a finding if a content lacks what the consumer has: the slot is behind that already, and changes go on
// there.
func (c *consumer) lacks(what string, o *oracle, got content) *Finding {
	for n, k := range o.spaces {
		if is, _ := parseMark(got[k.markKey()]); is < c.now.ids[n] {
			return found("slot", "%s has operation %d of %s, and the slot has passed %d", what, is, k.prefix,
				c.now.ids[n])
		}
	}
	return nil
}
