package stress

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/siftkv/siftkv/kv"
)

// A consumer follows a store through a slot. What it has is on another machine: no fault of the disk takes it. A worker
// that must use a slot makes a step of a consumer that no other worker has.
type consumer struct {
	mu    sync.Mutex
	name  string
	there bool     // it has a replica, and the slot is there
	now   replica  // all changes that it has
	noted replica  // when it acknowledged last, or tried to: it goes on there after its own end
	acked uint64   // the last acknowledgement that succeeded
	seen  []uint64 // of each keyspace, the last operation that a snapshot or a change had: no crash takes it back

	away  *elsewhere // nil: the consumer is in the writer's process
	wrong *Finding   // of how a process elsewhere ended

	slot *kv.Slot                                  // nil: it is not open
	next func() (c *kv.Change, err error, ok bool) // nil: no changes are under way
	stop func()
}

// A replica is what a consumer makes of a snapshot and the changes after it.
type replica struct {
	position uint64
	ids      []uint64 // of each keyspace, its last operation
	cells    cells
}

func (r *replica) clone() replica {
	return replica{r.position, slices.Clone(r.ids), maps.Clone(r.cells)}
}

func newConsumers() (all []*consumer) {
	for _, name := range []string{"cache", "copy", "index"} {
		all = append(all, &consumer{name: name})
	}
	return all
}

// changes takes a step of a consumer.
func (w *worker) changes() *Finding {
	c := w.r.consumers[w.rng.IntN(len(w.r.consumers))]
	if !c.mu.TryLock() {
		return nil
	}
	defer c.mu.Unlock()
	return cmp.Or(c.step(w), c.wrong)
}

func (c *consumer) step(w *worker) *Finding {
	if c.away != nil && c.away.gone() {
		c.detach()
	}
	switch {
	case !c.there:
		return c.begin(w)
	case c.slot == nil:
		return c.reopen(w)
	}
	switch n := w.rng.IntN(16); {
	case n < 3:
		return c.acknowledge(w)
	case n == 3:
		c.detach()
		return nil
	case n == 4:
		return w.dropOpen(c)
	case w.rng.IntN(3) == 0:
		return c.take(w, 1+w.rng.IntN(4)) // and lags
	}
	return c.take(w, 1000)
}

// acknowledge acknowledges all changes that the consumer has.
func (c *consumer) acknowledge(w *worker) *Finding {
	if c.away != nil && c.away.durable < c.now.position {
		return nil // Ack would wait for the writer, which may have failed
	}
	c.noted = c.now.clone()
	c.tell(w.r)
	err := c.slot.Ack(c.now.position)
	if err == nil {
		c.acked = c.now.position
		c.tell(w.r)
	}
	return c.failed(w, err)
}

// dropOpen drops a slot: first while it is open, which does nothing.
func (w *worker) dropOpen(c *consumer) *Finding {
	if err := w.db.DropSlot(c.name); err == nil {
		return found("slot", "%s is open and was dropped", c.name)
	} else if !errors.Is(err, kv.ErrLocked) {
		return w.allow(err)
	}
	if w.rng.IntN(4) > 0 {
		return nil
	}
	c.giveUp(w.r)
	return w.allow(w.db.DropSlot(c.name))
}

// begin makes the consumer's slot, and copies the snapshot.
func (c *consumer) begin(w *worker) *Finding {
	var snap *kv.Snapshot
	w.r.losses.of(c.name) // of the one before
	err := w.makeDurable(func() (err error) {
		c.slot, snap, err = w.db.CreateSlot(context.Background(), c.name)
		return err
	})
	if errors.Is(err, fs.ErrExist) { // it is lost, or its consumer never came to be
		return w.allow(w.db.DropSlot(c.name))
	}
	if err != nil {
		c.slot = nil
		return w.allow(err)
	}
	_, f := c.copy(w, snap)
	if err := snap.Close(); f == nil {
		f = w.allow(err)
	}
	if !c.there {
		c.detach()
		return f
	}
	c.noted, c.acked = c.now.clone(), c.now.position
	c.tell(w.r)
	w.r.slot("made")
	return f
}

// copy makes the replica of a snapshot, which is a prefix of the writes. It reports false if it made none.
func (c *consumer) copy(w *worker, snap *kv.Snapshot) (copied bool, f *Finding) {
	o := w.r.oracle
	o.clock.hold.RLock()
	defer o.clock.hold.RUnlock()
	got, err := readAll(snap, "", w.rng.IntN(2) == 0)
	if err != nil {
		return false, w.allow(err)
	}
	what := "the snapshot of slot " + c.name
	if c.away != nil && o.isOlder(got) {
		return false, c.lacks(what, o, got) // a view may have less than an opening since
	}
	if f := o.checkView(what, got, nil); f != nil {
		return false, f
	}
	c.now = replica{position: c.slot.Position(), cells: cells{}}
	for _, k := range o.spaces {
		k.mu.Lock()
		p, f := k.locate(got, o.clock.now())
		k.mu.Unlock()
		if f != nil {
			f.Text = what + ": " + f.Text
			return false, f
		}
		id := uint64(0)
		if v, ok := got[k.markKey()]; ok {
			id, _ = parseMark(v) // locate has read it
		}
		c.now.ids = append(c.now.ids, id)
		maps.Copy(c.now.cells, p.cells)
	}
	for n := range commonCounters {
		if v, ok := got[counterKey(n)]; ok {
			c.now.cells.apply([]write{{key: counterKey(n), value: v}})
		}
	}
	for n, id := range c.now.ids {
		c.saw(w.r, n, id)
	}
	c.there = true
	return true, nil
}

// reopen opens the slot again, for a consumer that has all its changes, or goes on where it acknowledged last.
func (c *consumer) reopen(w *worker) *Finding {
	slot, err := c.open(w)
	if err != nil {
		return c.failed(w, err)
	}
	c.slot = slot
	if at := slot.Position(); at != c.acked && at != c.noted.position {
		return found("slot", "%s was acknowledged up to %d, perhaps %d, and is at %d", c.name, c.acked,
			c.noted.position, at)
	}
	if w.rng.IntN(2) == 0 {
		c.now = c.noted.clone()
	}
	if err := slot.Skip(c.now.position); err != nil {
		c.detach() // it would begin before what the consumer has
		return c.failed(w, err)
	}
	w.r.slot("opened")
	if w.rng.IntN(4) == 0 {
		return c.beginAgain(w, patienceElsewhere)
	}
	return nil
}

// take takes up to n changes that are there. If there is none, the worker makes one.
func (c *consumer) take(w *worker, n int) *Finding {
	if !c.lags(w.r.oracle) {
		if f := w.setOne(); f != nil {
			return f
		}
	}
	if f := c.refresh(w); f != nil || c.slot == nil {
		return f
	}
	ctx, cancel := c.waiting(patienceElsewhere)
	defer func() {
		if c.away != nil {
			c.end()
		}
		cancel()
	}()
	for ; n > 0 && c.lags(w.r.oracle); n-- {
		first := c.next == nil
		if first {
			c.next, c.stop = iter.Pull2(c.slot.Changes(ctx))
		}
		change, err, _ := c.next()
		if err == nil {
			f, replayed := c.apply(w.r, change, first)
			if f != nil {
				return f
			}
			if err = replayed; err == nil {
				c.prove()
			}
		}
		if err != nil {
			c.end()
			return c.failed(w, err)
		}
		if w.rng.IntN(20) == 0 {
			c.end() // the last change comes again
		}
	}
	return nil
}

// end ends changes that are under way.
func (c *consumer) end() {
	if c.next != nil {
		c.stop()
		c.next, c.stop = nil, nil
	}
}

// detach gives the slot back.
func (c *consumer) detach() {
	c.end()
	if c.slot != nil {
		_ = c.slot.Close() // it never fails
		c.slot = nil
	}
	if c.away != nil {
		c.wrong = cmp.Or(c.wrong, c.away.end())
		c.away = nil
	}
}

// giveUp drops the replica.
func (c *consumer) giveUp(r *round) {
	c.detach()
	c.there, c.seen = false, nil
	c.tell(r)
}

// detach ends the consumers that are in the process of the store, which ends.
func (l *life) detach() {
	for _, c := range l.consumers {
		if c.away == nil {
			c.detach()
		}
	}
}

// end ends all consumers. If a round goes on and uses them, the power is cut, which ends their processes.
func (l *life) end() {
	if l.goesOn {
		l.disk.Cut()
		return
	}
	for _, c := range l.consumers {
		c.detach()
	}
}
