package branch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/objstore"
)

// Retained are the sorted files and blob files of a branch that checkpoints and pins of branches name. Each object is
// read once. They are for one goroutine.
type Retained struct {
	f      *Set
	prefix filelist.BranchPrefix
	known  map[string]*pin // by keys
	own    []Checkpoint    // the branch's pins

	listed []Checkpoint // all there were
}

// A pin is what matters of a checkpoint, or of a branch's pin, to the branch.
type pin struct {
	nums   []uint64 // of the branch's files, in ascending order
	others bool     // it has files of other branches
	branch uint64   // the number of the branch whose state it has
}

// NewRetained returns what is retained of a branch; Update reads it.
func NewRetained(f *Set, at filelist.BranchPrefix) *Retained {
	return &Retained{f: f, prefix: at, known: map[string]*pin{}}
}

// Update brings the pins up to date. It is a LIST of all checkpoints, a thousand objects to a request, and a GET for
// each that was not there the last time. After an error nothing may be deleted: the unreadable checkpoint may need any
// file.
func (p *Retained) Update(ctx context.Context) error {
	found, err := p.f.Checkpoints(ctx, "checkpoint/")
	if err != nil {
		return err
	}
	known := make(map[string]*pin, len(found))
	p.own = p.own[:0]
	for _, c := range found {
		x := p.known[c.key]
		if x == nil {
			if x, err = p.read(ctx, c); errors.Is(err, objstore.ErrNotExist) {
				continue // it was dropped
			}
			if err != nil {
				return fmt.Errorf("a checkpoint cannot be read, and so no sorted file or blob file is deleted: %w", err)
			}
			p.known[c.key] = x // also if a later one cannot be read
		}
		known[c.key] = x
		if c.prefix == p.prefix && c.Name == "" {
			p.own = append(p.own, c)
		}
	}
	p.known, p.listed = known, found
	return nil
}

// read returns what matters of a checkpoint.
func (p *Retained) read(ctx context.Context, c Checkpoint) (*pin, error) {
	s, h, err := p.f.readList(ctx, c)
	if err != nil {
		return nil, err
	}
	x := &pin{branch: h.branch}
	for num, t := range s.List.Files {
		if t.Prefix == p.prefix {
			x.nums = append(x.nums, num)
		} else {
			x.others = true
		}
	}
	slices.Sort(x.nums)
	return x, nil
}

// Has reports whether a checkpoint names a file of the branch with this number.
func (p *Retained) Has(num uint64) bool {
	for _, x := range p.known {
		if _, found := slices.BinarySearch(x.nums, num); found {
			return true
		}
	}
	return false
}

// derived reports whether a checkpoint of the branch, or a branch that was made from it, has files of other
// branches. Then the branch's own pins stay, so that listings show them.
func (p *Retained) derived() bool {
	for _, x := range p.known { // the own pins are made from another branch
		if x.others && x.branch == p.prefix.Number() {
			return true
		}
	}
	return false
}

// ReleaseOwn deletes the branch's own pins, and the checkpoints that were dropped and that they have kept, unless the
// branch's checkpoints or derived branches need files of others. The caller has seen before it called Update that the
// branch itself needs none: a file that was removed since may be in a newer checkpoint.
//
// It is a DELETE for each. If the branch was made from a checkpoint that is still there, and may just be dropped, see
// unpin.
func (p *Retained) ReleaseOwn(ctx context.Context) error {
	if p.derived() {
		return nil
	}
	for _, own := range p.own {
		is := func(c Checkpoint) bool { return c.Number == own.Number && c.Name != "" }
		drop := p.f.remove
		if slices.ContainsFunc(p.listed, is) {
			drop = p.f.unpin
		}
		if err := drop(ctx, own.key); err != nil {
			return err
		}
	}
	p.own = nil
	return nil
}

// listGuess is how many bytes of a checkpoint are read first: most have their list of files in that.
const listGuess = 64 << 10

// readList reads the list of files of a checkpoint: one GET if it has at most 64 KiB, else two.
func (f *Set) readList(ctx context.Context, c Checkpoint) (s *Snapshot, h Header, err error) {
	err = twice(func() error {
		b, err := f.getStart(ctx, c.key, listGuess)
		if err == nil {
			h, err = decodeHeader(b, c.key)
		}
		if err != nil {
			return err
		}
		if end := h.listEnd(); end > uint64(len(b)) && end <= uint64(max(c.size, 0)) {
			if b, err = f.getStart(ctx, c.key, int(end)); err != nil {
				return err
			}
		}
		s, err = decodeList(b, c.key, h)
		return err
	})
	return s, h, err
}
