package branch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/sequence"
)

// firstSlot is that of a branch's first entry, which has all that the branch begins with. It has the epoch 1, as if a
// fence stood before it.
const firstSlot = 2

// Clone makes a branch that begins with the state of another, or with a checkpoint of it: o says which. No sorted file
// is read or copied. The error matches ErrExists if there is a branch of that name; an unfinished one is no branch, and
// is begun again.
//
// It registers the branch's name, pins its files, and puts its first entry; then the branch can be opened. That is
// three PUT, a LIST and a GET to look up the name, and two LIST and a GET at least to read the state and verify it. If
// the other is not the main branch, it is two LIST and four GET more.
func Clone(ctx context.Context, o Options, name string) error {
	if err := filelist.CheckName(name); err != nil {
		return err
	}
	c := &cloning{f: NewSet(o), parent: o.Branch, from: o.Checkpoint, name: name}
	if err := c.find(ctx); err != nil {
		return err
	}
	if err := c.register(ctx); err != nil {
		return err
	}
	err := c.pin(ctx)
	if err == nil {
		err = c.begin(ctx)
	}
	return err
}

type cloning struct {
	f      *Set
	parent string
	from   string // a checkpoint of the parent; empty: the parent as it is now
	name   string

	source       *sequence.Sequence // the parent's entries
	sourcePrefix filelist.BranchPrefix
	checkpoint   Checkpoint // if there is one
	branch       branch     // the new one
	state        *Snapshot
}

// find looks for what the branch is made from.
func (c *cloning) find(ctx context.Context) error {
	at, store, err := c.f.Locate(ctx, c.parent)
	if err != nil {
		return err
	}
	c.sourcePrefix, c.source = at, c.f.Sequence(at, store)
	if c.from == "" {
		if c.state, err = ReadSnapshot(ctx, c.source); err != nil {
			return err
		}
	} else {
		if c.checkpoint, err = c.f.FindCheckpoint(ctx, at, c.from); err != nil {
			return err
		}
		var h Header
		if c.state, h, err = c.f.ReadCheckpoint(ctx, c.checkpoint); err != nil {
			return err
		}
		c.source.Adopt(h.Store)
	}
	c.branch = branch{state: branchThere, prefix: filelist.NewBranchPrefix(c.name, sequence.RandomID()),
		created: time.Now(),
		parent:  c.parent,
		from:    c.from, store: c.source.Store()}
	return nil
}

// register takes the name.
func (c *cloning) register(ctx context.Context) error {
	there := fmt.Errorf("%w: there is a branch %q", ErrExists, c.name)
	before, err := c.f.branch(ctx, c.name)
	if err != nil {
		return err
	}
	switch before.state {
	case branchThere, branchDropping:
		if finished, err := c.f.giveUp(ctx, before); finished || err != nil {
			return errors.Join(err, there)
		}
	case branchDropped:
		if err := c.f.clear(ctx, before); err != nil {
			return err
		}
	}
	var won bool
	if c.branch, won, err = c.f.change(ctx, c.name, before, c.branch); err == nil && !won {
		err = there
	}
	return err
}

// giveUp makes sure that a branch that was not finished never is, and deletes what there is of it. It reports whether
// the branch was finished after all.
func (f *Set) giveUp(ctx context.Context, b branch) (finished bool, err error) {
	s := f.Sequence(b.prefix, b.store)
	v, err := s.Tail(ctx)
	if err != nil || v.Data > 0 {
		return err == nil, err
	}
	// A Clone that is still at work finds a fence where the first entry should be.
	if _, err = s.FenceOff(ctx, v, firstSlot); err != nil || v.Data > 0 {
		return err == nil, err
	}
	return false, f.sweepCheckpoints(ctx, b) // there are no entries and no sorted files
}

// pin saves which files the branch needs, and makes sure that they stay.
func (c *cloning) pin(ctx context.Context) error {
	save := saving{f: c.f, from: c.source, prefix: c.sourcePrefix, to: c.branch.prefix, created: c.branch.created}
	var err error
	if c.from == "" {
		save.now = c.state
		_, c.state, err = save.run(ctx)
	} else if _, err = save.put(ctx, c.state, c.checkpoint.Number); err == nil {
		// The checkpoint stays as long as the pin, even if it is dropped later.
		var now Checkpoint
		if now, err = c.f.FindCheckpoint(ctx, c.sourcePrefix, c.from); err == nil && now.Number != c.checkpoint.Number {
			err = Missing("the checkpoint %q was dropped meanwhile", c.from)
		}
	}
	if err != nil {
		return err
	}
	return c.stillThere(ctx)
}

// stillThere makes sure that no drop of the parent has missed the pin. The main branch is never dropped.
func (c *cloning) stillThere(ctx context.Context) error {
	if c.parent == "" {
		return nil
	}
	b, err := c.f.branch(ctx, c.parent)
	if err == nil && (b.state != branchThere || b.prefix != c.sourcePrefix) {
		err = Missing("the branch %q is being dropped", c.parent)
	}
	return err
}

// begin puts the first entry.
func (c *cloning) begin(ctx context.Context) error {
	s := c.f.Sequence(c.branch.prefix, c.branch.store)
	own, err := s.CreateData(ctx, firstSlot, c.branch.store, c.state.first(firstSlot))
	if err == nil && !own {
		err = fmt.Errorf("%w: another process has begun to make the branch %q since", ErrExists, c.name)
	}
	return err
}
