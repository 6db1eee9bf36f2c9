package kv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/changefeed"
	"github.com/siftkv/siftkv/internal/changelog"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A Slot is a durable place in the history of the store, with the changes after it. See DB.CreateSlot.
type Slot = changefeed.Slot

// A Change is what one commit wrote: a batch, a transaction, an ingest. See Slot.Changes.
type Change = changefeed.Change

// A SlotInfo is what DB.Slots tells of a slot.
type SlotInfo = changelog.State

// ErrSlotLost is matched when a store does not have the history any more that a slot needs, and the error says why. The
// consumer may be further behind than Options.MaxSlotBytes and MaxSlotAge allow. Or the store has another history by
// now: it was repaired, opened with SkipCorrupt, or has lost writes. Drop the slot, and begin again with a new one.
var ErrSlotLost = changelog.ErrLost

// CreateSlot makes a slot, and a snapshot: the slot's changes are all commits after the snapshot. Together they are the
// store, for a consumer that keeps something in step with it. Read the snapshot, close it, then take Slot.Changes.
//
// From now on the store keeps its history after the slot's last acknowledgement: logs, and the files of ingests. That
// costs a sync of each log that ends, and space, which Options.MaxSlotBytes bounds. The slot outlives the process, the
// snapshot does not: a consumer that dies before it has read all of it drops the slot, and creates it again.
//
// A name has 1 to 64 letters a to z, digits, '-' and '_'. If there is such a slot, the error matches fs.ErrExist.
// Checkpoints, branches and restored stores have no slots, whatever their origin has.
func (d *DB) CreateSlot(ctx context.Context, name string) (*Slot, *Snapshot, error) {
	if err := cmp.Or(d.writable(), d.readable()); err != nil {
		return nil, nil, err
	}
	leave, err := enter(d)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	lock, err := d.slots.Lock(name)
	if err != nil {
		return nil, nil, err
	}
	var snap *Snapshot
	err = d.commits.Exclusive(ctx, func() error {
		if d.objects != nil && !d.slots.Active() { // consumers can read a log that begins now, and none before
			if _, err := endMemtable(ctx, d); err != nil {
				return err
			}
		}
		snap = d.NewSnapshot()
		return d.slots.Begin(name, snap.view.at, lock)
	})
	if err != nil {
		err = errors.Join(err, lock.Close())
		if snap != nil {
			err = errors.Join(err, snap.Close())
		}
		return nil, nil, err
	}
	// What the snapshot has must be durable before the slot is: a crash would leave a slot of the future.
	if err = d.commits.SyncVisible(ctx); err == nil {
		err = d.slots.Trim() // the edit begins the history, unless there is one
	}
	if err == nil {
		err = d.slots.Save(name)
	}
	if err != nil {
		d.slots.Forget(name)
		return nil, nil, errors.Join(err, snap.Close())
	}
	d.marks.Start(changelog.LookEvery)
	return changefeed.New(slotStore(d), name, snap.view.at), snap, nil
}

// OpenSlot opens a slot for its consumer, which has all changes up to the last one that was acknowledged. If there is
// no such slot, the error matches fs.ErrNotExist; if it is lost, ErrSlotLost; if it has a consumer already on this
// machine, ErrLocked.
//
// A store that OpenReadOnly has opened in a directory has the slots of the store's writer: the consumer is in another
// process then, and does not move the view: Refresh lets the writer remove files. Changes come while a writer has the
// store open. Of one that has died, the last come after the next has opened it.
//
// In an object store the consumer of a view may be on another machine, and it has what the writer has flushed or
// ingested. It needs the rights to PUT, LIST and DELETE, and sends a GET per PollInterval while it waits. The newest
// OpenSlot has the slot: what the one before acknowledges next fails, and the error matches ErrFenced of package
// objects, or ErrClosed if it was of the same view. Close the slot in the writer's process first. The writer learns of
// acknowledgements when it flushes.
func (d *DB) OpenSlot(name string) (*Slot, error) {
	leave, err := enter(d)
	if err != nil {
		return nil, err
	}
	defer leave()
	if d.follower != nil {
		return openElsewhere(d, name)
	}
	if err := cmp.Or(d.writable(), d.readable()); err != nil {
		return nil, err
	}
	acked, err := d.slots.Open(name)
	if err != nil {
		return nil, err
	}
	return changefeed.New(slotStore(d), name, acked), nil
}

// openElsewhere is OpenSlot for a consumer in another process than the writer.
func openElsewhere(d *DB, name string) (*Slot, error) {
	if d.objects == nil && !vfs.LocksEndWithProcess {
		return nil, fmt.Errorf("siftkv: a slot of a store that another process writes: %w", errors.ErrUnsupported)
	}
	interrupted := func(ctx context.Context) error {
		if err := d.interrupted(ctx, "changes were read"); err != nil {
			return err
		}
		return d.directory.Check()
	}
	c := &changelog.Consumer{FS: d.fs, Dir: d.dir, Poll: d.opts.PollInterval, Interrupted: interrupted}
	if d.objects != nil {
		directory, err := d.objects.another()
		if err != nil {
			return nil, err
		}
		c.FS, c.Objects = directory, directory
	}
	acked, err := c.Open(d.follower.closing, name)
	if err != nil {
		return nil, errors.Join(base.WithHint(err, d.opts.hint(d.dir)), c.Close(), interrupted(context.Background()))
	}
	d.slots.Follow(c)
	return changefeed.New(&changefeed.Store{FS: c.FS, Dir: d.dir, Hint: d.opts.hint(d.dir),
		Last: func() (base.SeqNum, error) {
			last, _, err := c.Range(context.Background())
			return last, err
		},
		Ack:     func(_ string, seq base.SeqNum) error { return c.Ack(seq) },
		Release: func(string) { _ = c.Close() }, // it was only read
		Locate:  func(_ string, at base.SeqNum) (manifest.KeptPart, error) { return c.Locate(at) },
		Await:   c.Await, Interrupted: interrupted, ExplainLoss: c.ExplainLoss}, name, acked), nil
}

// SnapshotOf returns a snapshot for the consumer of a slot to begin with, or to begin again, as that of CreateSlot is.
// The slot, which must be open and of this DB, moves on to it: Changes yields what comes after. Acknowledge
// Slot.Position when the snapshot is read.
//
// All that the snapshot has is durable. In a store that OpenReadOnly has opened it refreshes the view, and the snapshot
// is of the view, as far as that is known to be durable: later writes come as changes.
func (d *DB) SnapshotOf(ctx context.Context, slot *Slot) (snap *Snapshot, err error) {
	if d.follower != nil {
		snap, err = durableView(ctx, d, slot.Name())
	} else if err = cmp.Or(d.writable(), d.readable()); err == nil {
		snap, err = d.NewSnapshot(), d.commits.SyncVisible(ctx)
	}
	if err == nil {
		err = slot.Skip(uint64(snap.view.at))
	}
	if err != nil && snap != nil {
		return nil, errors.Join(err, snap.Close())
	}
	return snap, err
}

// durableView refreshes a view until it can be one of what is durable. Writes of logs that are not may be undone.
func durableView(ctx context.Context, d *DB, slot string) (*Snapshot, error) {
	c := d.slots.Follows(slot)
	if c == nil {
		return nil, invalidf("the slot is not open")
	}
	for {
		_, durable, err := c.Range(ctx)
		if err == nil {
			err = d.Refresh(ctx)
		}
		if err != nil {
			return nil, err
		}
		snap := d.NewSnapshot()
		if d.objects != nil && snap.pinned != nil { // all tables in a list of files are durable
			durable = max(durable, snap.pinned.version.LastSeq)
		}
		if snap.moveTo(durable) {
			return snap, nil
		}
		if err := snap.Close(); err != nil {
			return nil, err
		}
		select {
		case <-time.After(d.opts.PollInterval):
		case <-ctx.Done():
		}
	}
}

// DropSlot removes a slot, which must not be open, and the history that only it needed.
func (d *DB) DropSlot(name string) error {
	if err := d.writable(); err != nil {
		return err
	}
	leave, err := enter(d)
	if err != nil {
		return err
	}
	defer leave()
	return d.slots.Drop(name)
}

// Slots returns the store's slots, by name. In a store that OpenReadOnly has opened they are those of the store's
// writer, as far behind the view as they are, and it returns none if their files cannot be read. In an object store it
// sends requests: they are as far behind what is flushed as they were when the writer flushed last.
func (d *DB) Slots() []SlotInfo {
	if d.follower == nil {
		return d.slots.States(d.seq())
	}
	d.mu.Lock()
	last := d.limit
	d.mu.Unlock()
	if d.closed.Load() {
		return nil
	}
	states, err := slotsElsewhere(d, last)
	if err != nil {
		d.log.Warn("the slots cannot be read", "dir", d.dir, "error", err)
	}
	return states
}

// slotsElsewhere returns the slots of a store that another process writes, whose last write in view is last.
func slotsElsewhere(d *DB, last base.SeqNum) ([]SlotInfo, error) {
	if d.objects == nil {
		return d.slots.StatesElsewhere(d.fs, last)
	}
	directory, err := d.objects.another()
	if err != nil {
		return nil, err
	}
	states, err := d.slots.StatesElsewhere(directory, last)
	return states, errors.Join(err, directory.Close())
}

// enter makes Close wait for the caller, which may write files, until leave.
func enter(d *DB) (leave func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return nil, ErrClosed
	}
	d.ingesting++
	return func() { d.reschedule(func() { d.ingesting-- }) }, nil
}

// slotStore returns what slots need of the store.
func slotStore(d *DB) *changefeed.Store {
	return &changefeed.Store{FS: d.fs, Dir: d.dir, Hint: d.opts.hint(d.dir),
		Last: func() (base.SeqNum, error) { return d.seq(), nil },
		Ack: func(name string, seq base.SeqNum) error {
			leave, err := enter(d)
			if err != nil {
				return err
			}
			defer leave()
			return d.slots.Ack(name, seq)
		},
		Release:     d.slots.Close,
		Locate:      func(name string, at base.SeqNum) (manifest.KeptPart, error) { return locateHistory(d, name, at) },
		Await:       func(ctx context.Context, at base.SeqNum) (base.SeqNum, error) { return awaitDurable(ctx, d, at) },
		Interrupted: func(ctx context.Context) error { return d.interrupted(ctx, "changes were read") },
		ExplainLoss: d.objects.overtaken}
}

// How much time passes at least between marks for consumers in other processes, and if they cost a sync.
const (
	markPause     = 4 * time.Millisecond
	syncMarkPause = 20 * time.Millisecond
)

// connectMarker gives the Marker what it needs of the store.
func connectMarker(d *DB) {
	marked := base.SeqNum(0)
	d.marks.Log = &d.slots
	d.marks.Wait = func(ctx context.Context) {
		_ = d.commits.Watch.Wait(ctx, func() bool { return d.closed.Load() || d.seq() > marked })
	}
	d.marks.Mark = func(ctx context.Context) (pause time.Duration, flushing bool, err error) {
		marked, pause = d.seq(), markPause
		if !d.commits.Durable(marked) {
			pause = syncMarkPause
		}
		d.mu.Lock()
		flushing = len(d.imms) > 0
		d.mu.Unlock()
		if err := d.commits.MarkSynced(ctx); err != nil {
			return 0, false, err
		}
		d.manifest.Lock()
		defer d.manifest.Unlock()
		return pause, flushing, d.manifest.Mark()
	}
}

// locateHistory returns what has the first write after number at. What is kept and the memtables' logs change at one
// moment, under the lock.
func locateHistory(d *DB, name string, at base.SeqNum) (manifest.KeptPart, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mem == nil {
		return manifest.KeptPart{}, ErrClosed
	}
	part, ok, err := d.slots.After(name, at)
	if err != nil || ok {
		return part, err
	}
	for _, m := range d.imms {
		if last := base.SeqNum(m.LastSeq.Load()); last > at {
			return manifest.KeptPart{Log: m.Log, Last: last}, nil
		}
	}
	return manifest.KeptPart{Log: d.mem.Log, Last: base.MaxSeqNum}, nil
}

// minSyncEvery is how much time passes between syncs that consumers of slots want.
const minSyncEvery = 2 * time.Millisecond

// awaitDurable returns, once a write after number at is durable, the last write that is.
func awaitDurable(ctx context.Context, d *DB, at base.SeqNum) (base.SeqNum, error) {
	later := func() bool { return d.closed.Load() || d.seq() > at }
	if err := d.commits.Watch.Wait(ctx, later); err != nil {
		return 0, base.ContextError(ctx, "waited for a change")
	}
	if d.closed.Load() {
		return 0, ErrClosed
	}
	seq := d.seq()
	if !d.commits.Durable(seq) {
		select { // commits that come meanwhile share the sync
		case <-time.After(minSyncEvery):
		case <-ctx.Done():
			return 0, base.ContextError(ctx, "waited for a change")
		}
		seq = d.seq()
		if err := d.commits.SyncVisible(ctx); err != nil {
			return 0, err
		}
	}
	return seq, nil
}
