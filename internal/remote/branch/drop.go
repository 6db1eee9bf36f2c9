package branch

import (
	"context"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/sequence"
)

// errMainBranch says why the main branch stays.
var errMainBranch = fmt.Errorf("%w: the main branch is the store itself; delete all objects instead",
	filelist.ErrInvalidName)

// DropBranch deletes a branch with all of its checkpoints. Its writer gets ErrFenced. The error matches ErrInUse, and
// nothing has changed, if other branches or their checkpoints need sorted files of it. After other errors the branch is
// as it was, or cannot be opened any more; then a second DropBranch continues. A file that a writer of the branch was
// uploading may stay.
//
// It is at least five PUT, eight LIST and two GET, and a DELETE for each object of the branch that is no fence. In
// addition it is a GET for each checkpoint, and a LIST and two GET for each other branch that has any.
func DropBranch(ctx context.Context, o Options, name string) error {
	if name == "" {
		return errMainBranch
	}
	if err := filelist.CheckName(name); err != nil {
		return err
	}
	f := NewSet(o)
	b, err := f.branch(ctx, name)
	if err != nil {
		return err
	}
	switch b.state {
	case branchThere, branchDropping:
		if b, err = f.retire(ctx, name, b); err != nil {
			return err
		}
	case branchDropped:
	default:
		return Missing("no branch is called %q", name)
	}
	if err := f.clear(ctx, b); err != nil {
		return err
	}
	b.state = branchGone
	_, _, err = f.change(ctx, name, b, b) // another caller that changed it since has cleared it too
	return err
}

// retire makes a branch impossible to open, unless others need it.
//
// Clone pins the files first, and then checks whether the branch is being dropped. retire first marks the branch as
// being dropped, and then reads the pins. So one of the two sees the other.
func (f *Set) retire(ctx context.Context, name string, b branch) (branch, error) {
	u := &users{f: f, pins: NewRetained(f, b.prefix), gone: map[filelist.BranchPrefix]bool{"": false, b.prefix: false}}
	if err := u.none(ctx, b); err != nil && b.state == branchThere {
		return b, err
	}
	next := func(state branchState) error {
		now := b
		now.state = state
		now, won, err := f.change(ctx, name, b, now)
		if err == nil && !won {
			err = fmt.Errorf("siftkv: another process is dropping the branch %q", name)
		}
		if err == nil {
			b = now
		}
		return err
	}
	if b.state == branchThere {
		if err := next(branchDropping); err != nil {
			return b, err
		}
	}
	if err := u.none(ctx, b); err != nil {
		return b, errors.Join(err, next(branchThere))
	}
	return b, next(branchDropped)
}

// users are the checkpoints and branches that may need files of a branch.
type users struct {
	f    *Set
	pins *Retained
	gone map[filelist.BranchPrefix]bool // whether there is no such branch any more
}

// none returns an error that matches ErrInUse if others need files of the branch, or files of others that they have
// through it. It also deletes checkpoints and pins of branches that are gone: a delayed request has put them there, or
// an interrupted drop has left them. It is a LIST; the first time also a GET for each checkpoint and each pin, and a
// LIST and two GET for each other branch that has any. For each pin of a branch that is gone, see unpin.
func (u *users) none(ctx context.Context, b branch) error {
	f, p, gone := u.f, u.pins, u.gone
	if err := p.Update(ctx); err != nil {
		return err
	}
	for _, c := range p.listed {
		is, known := gone[c.prefix]
		if !known {
			other, err := f.branch(ctx, c.prefix.Branch())
			if err != nil {
				return err
			}
			// A branch is registered before its first checkpoint or pin, and its prefix is never used again.
			is = other.prefix != c.prefix || other.state >= branchDropped
			gone[c.prefix] = is
		}
		if is {
			if err := f.removeCheckpoint(ctx, c); err != nil {
				return err
			}
		}
	}
	for _, c := range p.listed {
		x := p.known[c.key]
		if c.prefix == b.prefix || gone[c.prefix] || x == nil || len(x.nums) == 0 && x.branch != b.prefix.Number() {
			continue
		}
		user := fmt.Sprintf("the checkpoint %q of the branch", c.Name)
		if c.Name == "" {
			user = "the branch"
		}
		return fmt.Errorf("%w: %s %q needs files of %q", ErrInUse, user, c.prefix.Branch(), b.prefix.Branch())
	}
	return nil
}

// clear deletes all objects of a branch that cannot be opened, after it has fenced its writer and any Clone that makes
// it. Fences stay: 80 bytes for each time that it was opened.
func (f *Set) clear(ctx context.Context, b branch) error {
	s := f.Sequence(b.prefix, b.store)
	err := s.Retire(ctx, firstSlot, func(fence uint64) error { return f.removeBefore(ctx, b, s, fence) })
	if err != nil {
		return err
	}
	return f.sweepCheckpoints(ctx, b)
}

// removeBefore deletes the sorted files of a branch, and the data before a fence. It keeps fences, which stop earlier
// writers. It keeps later entries too, because their writer is not fenced yet: a fence in one of their slots would not
// stop it.
func (f *Set) removeBefore(ctx context.Context, b branch, s *sequence.Sequence, fence uint64) error {
	for o, err := range f.store.List(ctx, b.prefix.Objects(), "") {
		if err != nil {
			return err
		}
		if slot, ok := s.SlotOf(o.Key); o.Size == sequence.FenceSize || ok && slot > fence {
			continue
		}
		if err := f.remove(ctx, o.Key); err != nil {
			return err
		}
	}
	return nil
}

// sweepCheckpoints deletes the checkpoints and the pins of a branch, what keeps others' files last.
func (f *Set) sweepCheckpoints(ctx context.Context, b branch) error {
	found, err := f.Checkpoints(ctx, b.prefix.Checkpoints())
	for _, pin := range []bool{false, true} {
		for _, c := range found {
			if err == nil && pin == (c.Name == "") {
				err = f.removeCheckpoint(ctx, c)
			}
		}
	}
	return err
}

// removeCheckpoint deletes a checkpoint or a pin.
func (f *Set) removeCheckpoint(ctx context.Context, c Checkpoint) error {
	if c.Name == "" {
		return f.unpin(ctx, c.key)
	}
	if err := f.remove(ctx, c.key+confirmedSuffix); err != nil {
		return err
	}
	return f.remove(ctx, c.key)
}
