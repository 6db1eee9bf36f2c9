package storecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/cespare/xxhash/v2"

	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/internal/operand"
	"github.com/siftkv/siftkv/kv"
)

type followCommand struct {
	From       Location `arg:"" help:"${store}"`
	To         Location `arg:"" help:"${follow_to}"`
	Slot       string   `placeholder:"NAME" help:"${follow_slot}"`
	UntilNow   bool     `help:"End once the copy has the writes that the store has now, in place of waiting for more."`
	SkipVerify bool     `help:"${follow_skip}"`
}

// Run copies the store if there is no copy yet, and brings the copy up to it.
func (c *followCommand) Run(ctx context.Context, p *program) error {
	if c.From == c.To {
		return usagef("the copy of %s must go elsewhere", c.To)
	}
	if c.SkipVerify && !c.UntilNow {
		return usagef("--skip-verify needs --until-now: without it, nothing is compared")
	}
	if err := c.To.changes(); err != nil {
		return err
	}
	f := &following{followCommand: c, p: p}
	err := f.run(ctx)
	if f.source.merger == "" && errors.Is(err, kv.ErrNoMerger) {
		// The store may have had no operands when it was read. The copy says how far it has come.
		source, failed := f.sourceOf(ctx)
		if err = errors.Join(err, failed); operand.Builtin(source.merger) != nil {
			return (&following{followCommand: c, p: p, changes: f.changes}).run(ctx)
		}
	}
	return err
}

// following is one run of the command.
type following struct {
	*followCommand
	p      *program
	copied bool     // there is a copy
	at     position // of the copy, if it has one
	source source

	until   uint64
	same    sameness
	changes int // that were applied
}

func (f *following) run(ctx context.Context) error {
	if err := f.findCopy(ctx); err != nil {
		return err
	}
	return (&Dir{f.From}).consume(ctx, f.p, func(db *kv.DB) error { return f.prepare(ctx, db) },
		func(db *kv.DB) error { return f.follow(ctx, db) })
}

// prepare makes the slot of a copy that is not there yet.
func (f *following) prepare(ctx context.Context, db *kv.DB) error {
	if f.copied {
		return nil
	}
	name := f.slotName(db)
	slot, err := db.OpenSlot(name)
	switch {
	case errors.Is(err, kv.ErrSlotLost):
		if err := db.DropSlot(name); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		if err == nil {
			err = slot.Close()
		}
		return err
	}
	slot, snapshot, err := db.CreateSlot(ctx, name)
	if err != nil {
		return err
	}
	return errors.Join(slot.Close(), snapshot.Close()) // the copy is of a later moment
}

// follow brings the copy up to the store.
func (f *following) follow(ctx context.Context, db *kv.DB) (err error) {
	slot, err := f.openSlot(ctx, db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, slot.Close()) }()
	if f.source, err = f.sourceOf(ctx); err != nil {
		return err
	}
	if err := f.begin(ctx, db, slot); err != nil {
		return err
	}
	compare := f.UntilNow || f.at.Adopted
	slot, snapshot, err := f.now(ctx, db, slot, compare)
	if snapshot != nil {
		defer func() {
			if snapshot != nil {
				err = errors.Join(err, snapshot.Close())
			}
		}()
	}
	if err == nil {
		err = slot.Skip(f.at.Write)
	}
	if err != nil {
		return err
	}
	o := f.To.stored()
	if o.Merger == nil {
		o.Merger = f.From.stored().Merger
	}
	if o.Merger == nil {
		o.Merger = operand.Builtin(f.source.merger)
	}
	return (&Dir{f.To}).with(ctx, f.p, o, false, func(to *kv.DB) error {
		if err := f.replay(ctx, db, slot, to, compare); err != nil || !compare {
			return err
		}
		if err := f.verify(ctx, snapshot, to); err != nil || f.UntilNow {
			return err
		}
		err := snapshot.Close() // it keeps files
		if snapshot = nil; err != nil {
			return err
		}
		return f.replay(ctx, db, slot, to, false)
	})
}

// now returns a snapshot to compare the copy with, if that is wanted, and the slot, which may be open again since.
func (f *following) now(ctx context.Context, db *kv.DB, slot *kv.Slot, compare bool) (*kv.Slot, *kv.Snapshot, error) {
	f.until = lastWrite(db, slot.Name())
	switch {
	case !compare:
		return slot, nil, nil
	case !f.From.remote():
		return slot, db.NewSnapshot(), nil
	}
	snapshot, err := db.SnapshotOf(ctx, slot) // what is not flushed is no change yet
	if err != nil {
		return slot, nil, err
	}
	f.until = slot.Position()
	again, err := db.OpenSlot(slot.Name())
	if err = errors.Join(err, slot.Close()); again == nil {
		again = slot
	}
	return again, snapshot, err
}

// slotName returns the name of the slot of the copy.
func (f *following) slotName(db *kv.DB) string {
	for _, s := range db.Slots() {
		if f.Slot == "" && s.Name == f.at.Slot {
			return s.Name // the copy may have been moved since
		}
	}
	return cmp.Or(f.Slot, f.To.slotName())
}

// openSlot opens the slot of the copy. If there is no copy yet, all that a view of a directory has is durable then.
func (f *following) openSlot(ctx context.Context, db *kv.DB) (*kv.Slot, error) {
	name := f.slotName(db)
	slot, err := db.OpenSlot(name)
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case f.copied && (missing || errors.Is(err, kv.ErrSlotLost)):
		return nil, fmt.Errorf("%w; the store in %s cannot go on: remove it, and run the command again", err, f.To)
	case missing:
		return nil, fmt.Errorf("%w; the program that has %s open makes it, with DB.CreateSlot", err, f.From)
	case err != nil || f.copied || f.From.remote():
		return slot, err
	}
	// The slot's changes are read once more if the copy needs them.
	if err := errors.Join(await(ctx, slot, lastWrite(db, name)), slot.Close()); err != nil {
		return nil, err
	}
	return db.OpenSlot(name)
}

// await waits until a slot has yielded the writes up to one: they are durable then.
func await(ctx context.Context, slot *kv.Slot, until uint64) error {
	all := consumer{slot: slot, bounded: true, until: until, peek: true,
		deliver: func(*kv.Change) (bool, error) { return false, nil }, makeDurable: func() error { return nil }}
	return all.run(ctx)
}

// slotName is the name of the slot of a copy, unless the command line has one.
func (l Location) slotName() string {
	text := string(l)
	if a, err := l.address(); l.remote() && err == nil {
		text = a.String()
	}
	scheme, path := "", text
	if cli.Scheme(text) == cli.DirScheme {
		scheme, path = text[:len("dir://")], text[len("dir://"):]
	}
	if scheme != "" || !l.remote() {
		if absolute, err := filepath.Abs(path); err == nil {
			text = scheme + absolute
		}
	}
	return fmt.Sprintf("follow-%016x", xxhash.Sum64String(text))
}

// replay hands the slot's changes on to the copy: all, or those that the store had when the command began.
func (f *following) replay(ctx context.Context, from *kv.DB, slot *kv.Slot, to *kv.DB, bounded bool) error {
	d := f.p.display()
	defer func() { d.end() }()
	a := &applier{Batch: to.NewBatch(), ctx: ctx, db: to, at: f.at}
	if err := a.commit(f.at.Write); err != nil { // there may be none yet
		return err
	}
	each := consumer{db: (&Dir{f.From}).refreshed(from), slot: slot, bounded: bounded, until: f.until,
		makeDurable: func() error { return to.Sync(context.WithoutCancel(ctx)) }}
	each.deliver = func(change *kv.Change) (last bool, err error) {
		if err := a.apply(change); err != nil {
			return false, f.refusal(change.Last(), err)
		}
		f.changes++
		d.show("follow", f.changes, 0, "commits")
		return false, nil
	}
	err := each.run(ctx)
	f.at = a.at
	return err
}

// refusal says what to do about a change that the copy never takes.
func (f *following) refusal(write uint64, err error) error {
	switch {
	case errors.Is(err, kv.ErrNoMerger):
		return fmt.Errorf("%w: that of %s is its program's own, which siftkv does not have; the program follows it "+
			"with DB.OpenSlot", err, f.From)
	case errors.Is(err, kv.ErrTooLarge): // no fault of the command line
		return fmt.Errorf("write change %d to %s: %s; remove the copy, and run the command again to copy the store as "+
			"it is now", write, f.To, cli.Text(err))
	}
	return err
}

// verify compares the copy with the store as it was when the command began, which is what the copy is, and reports if
// the command ends then.
func (f *following) verify(ctx context.Context, snapshot *kv.Snapshot, to *kv.DB) (err error) {
	verified := ""
	if !f.SkipVerify || f.at.Adopted {
		if f.at.Write != f.until {
			return fmt.Errorf("%s is as of write %d, and %s was read as of write %d: run the command again", f.To,
				f.at.Write, f.From, f.until)
		}
		now := to.NewSnapshot()
		f.same, err = f.p.same(ctx, &side{name: f.From, snapshot: snapshot}, &side{name: f.To, snapshot: now})
		if err = errors.Join(err, now.Close()); err != nil {
			return err
		}
		verified = fmt.Sprintf("; verified: %d keys, digest %016x on both sides", f.same.keys, f.same.digest)
	}
	if f.at.Adopted {
		f.at.Adopted = false
		if err := (&applier{Batch: to.NewBatch(), ctx: ctx, db: to, at: f.at}).commit(f.at.Write); err != nil {
			return err
		}
	}
	if !f.UntilNow {
		return nil
	}
	f.p.answer(object{
		"followed", f.From.name(), "to", f.To.name(), "slot", f.at.Slot, "position", f.at.Write, "changes", f.changes,
		"verified", verified != "", "keys", present(f.same.keys), "hash", present(keytext.ID(f.same.digest)),
	}, "%s: copy of %s as of sequence number %d, after %s%s\n", f.To, f.From, f.at.Write, count(f.changes, "change"),
		verified)
	return nil
}
