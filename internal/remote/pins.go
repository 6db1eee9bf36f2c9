package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/objstore"
)

// pins are the sorted files and blob files of a site that checkpoints and pins of branches name. Each object is read
// once. They are for one goroutine.
type pins struct {
	f     *family
	site  filelist.BranchPrefix
	known map[string]*pin   // by keys
	own   []savedCheckpoint // the pins of the site's branch

	listed []savedCheckpoint // all there were
}

// A pin is what matters of a checkpoint, or of a branch's pin, to a site.
type pin struct {
	nums   []uint64 // of the site's files, in ascending order
	others bool     // it has files of other sites
	branch uint64   // the number of the site whose state it has
}

func newPins(f *family, at filelist.BranchPrefix) *pins {
	return &pins{f: f, site: at, known: map[string]*pin{}}
}

// look brings the pins up to date. It is a LIST of all checkpoints, a thousand objects to a request, and a GET for each
// that was not there the last time. After an error nothing may be deleted: the unreadable checkpoint may need any file.
func (p *pins) look(ctx context.Context) error {
	found, err := p.f.checkpoints(ctx, "checkpoint/")
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
		if c.site == p.site && c.name == "" {
			p.own = append(p.own, c)
		}
	}
	p.known, p.listed = known, found
	return nil
}

// read returns what matters of a checkpoint.
func (p *pins) read(ctx context.Context, c savedCheckpoint) (*pin, error) {
	s, h, err := p.f.readList(ctx, c)
	if err != nil {
		return nil, err
	}
	x := &pin{branch: h.branch}
	for num, t := range s.list.Files {
		if t.Prefix == p.site {
			x.nums = append(x.nums, num)
		} else {
			x.others = true
		}
	}
	slices.Sort(x.nums)
	return x, nil
}

// name reports whether a checkpoint names a file of the site with this number.
func (p *pins) name(num uint64) bool {
	for _, x := range p.known {
		if _, found := slices.BinarySearch(x.nums, num); found {
			return true
		}
	}
	return false
}

// derived reports whether a checkpoint of the site's branch, or a branch that was made from it, has files of other
// sites. Then the branch's own pins stay, so that listings show them.
func (p *pins) derived() bool {
	for _, x := range p.known { // the own pins are made from another branch
		if x.others && x.branch == p.site.Number() {
			return true
		}
	}
	return false
}

// releaseOwn deletes the branch's own pins, and the checkpoints that were dropped and that they have kept, unless the
// branch's checkpoints or derived branches need files of others. The caller has seen before it called look that the
// branch itself needs none: a file that was removed since may be in a newer checkpoint.
//
// It is a DELETE for each. If the branch was made from a checkpoint that is still there, and may just be dropped, see
// unpin.
func (p *pins) releaseOwn(ctx context.Context) error {
	if p.derived() {
		return nil
	}
	for _, own := range p.own {
		is := func(c savedCheckpoint) bool { return c.number == own.number && c.name != "" }
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
func (f *family) readList(ctx context.Context, c savedCheckpoint) (s *saved, h savedHead, err error) {
	err = twice(func() error {
		b, err := f.getStart(ctx, c.key, listGuess)
		if err == nil {
			h, err = decodeSavedHead(b, c.key)
		}
		if err != nil {
			return err
		}
		if end := h.listEnd(); end > uint64(len(b)) && end <= uint64(max(c.size, 0)) {
			if b, err = f.getStart(ctx, c.key, int(end)); err != nil {
				return err
			}
		}
		s, err = decodeSavedList(b, c.key, h)
		return err
	})
	return s, h, err
}
