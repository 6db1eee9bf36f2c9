package remote

import (
	"context"

	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/remote/branch"
	"github.com/siftkv/siftkv/internal/remote/filelist"
)

// locate finds where the branch is, once. The caller holds refreshing.
func (f *FS) locate(ctx context.Context) error {
	if f.seq != nil {
		return nil
	}
	at, store, err := f.branches.Locate(ctx, f.o.Branch)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.prefix, f.seq = at, f.branches.Sequence(at, store)
	return nil
}

// checkBegun returns why there is no store where nothing was found: a branch has a first entry, or is none.
func (f *FS) checkBegun() error {
	if f.o.Branch == "" {
		return nil
	}
	return branch.Missing("the branch %q was begun and not finished; clone it again, or drop it", f.o.Branch)
}

// checkThere returns why nothing is left of a branch that was read before: it was dropped. It is a LIST and two GET.
func (f *FS) checkThere(ctx context.Context) error {
	at, _, err := f.branches.Locate(ctx, f.o.Branch)
	if err == nil && at != f.prefix {
		err = branch.Missing("the branch %q was dropped, and there is another of its name: open that", f.o.Branch)
	}
	return err
}

// loadCheckpoint makes the files those of the checkpoint, unless that was done: a LIST and a GET. After LookAgain, it
// returns an error if the checkpoint was dropped meanwhile: a LIST.
func (f *FS) loadCheckpoint(ctx context.Context) error {
	if f.at.List > 0 && !f.lost.Load() {
		return nil
	}
	c, err := f.branches.FindCheckpoint(ctx, f.prefix, f.o.Checkpoint)
	if err != nil {
		return err
	}
	if f.at.List > 0 {
		if c.Number != f.saved {
			err = branch.Missing("the checkpoint %q was dropped, and there is another of its name: open that", c.Name)
		}
		f.lost.Store(err != nil)
		return err
	}
	f.saved = c.Number
	s, h, err := f.branches.ReadCheckpoint(ctx, c)
	if err != nil {
		return err
	}
	f.seq.Adopt(h.Store)
	logs := filelist.SlotBody{Slot: 1, Body: filelist.Body{Chunks: s.Chunks()}}
	return f.take(&filelist.State{List: s.List, ManifestNum: s.ManifestNum, Slot: 1, Data: filelist.Bodies(logs)})
}

// PinCheckpoint is [branch.CreateCheckpoint] for the branch.
func (f *FS) PinCheckpoint(ctx context.Context, name string) (objectdir.Checkpoint, error) {
	return branch.CreateCheckpoint(ctx, f.o.Options, name)
}

// DropCheckpoint is [branch.DropCheckpoint] for the branch. A writer looks again whether files can be deleted that the
// checkpoint needed.
func (f *FS) DropCheckpoint(ctx context.Context, name string) error {
	err := branch.DropCheckpoint(ctx, f.o.Options, name)
	if w := f.asWriter(); w != nil && err == nil {
		w.collector.recheck()
	}
	return err
}
