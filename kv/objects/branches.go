package objects

import (
	"context"
	"time"

	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/remote/branch"
	"github.com/siftkv/siftkv/internal/remote/filelist"
)

// Errors about branches and checkpoints of a store in an object store. A branch or a checkpoint that
// is not there is ErrNotExist.
var (
	// ErrExists is matched when the name of a branch or a checkpoint is taken.
	ErrExists = branch.ErrExists
	// ErrInUse is matched when a branch cannot be dropped because others need its files.
	ErrInUse = branch.ErrInUse
	// ErrInvalidName is matched when a name is not 1 to 48 ASCII letters, digits, and characters
	// - _ . of which the first is a letter or a digit, and the last is no dot.
	ErrInvalidName = filelist.ErrInvalidName
)

// A CheckpointInfo describes a checkpoint in an object store.
type CheckpointInfo = objectdir.Checkpoint

// A BranchInfo describes a branch of a store in an object store.
type BranchInfo struct {
	Name       string
	Parent     string // the branch that it was cloned from; empty: the main one
	Checkpoint string // the checkpoint of the parent that it was cloned from, if it was one
	Created    time.Time

	// Unfinished says that it cannot be opened: it is being cloned, or that was cut short. Clone begins again, and
	// DropBranch deletes what there is.
	Unfinished bool
}

// PinCheckpoint keeps the state that the branch has in the object store now, under a name. Nothing
// is copied, and no file that it needs is deleted until DropCheckpoint. It needs no DB: the writer
// of the branch, on any machine, goes on and is not asked. It lacks what that writer has not put
// there yet: DB.PinCheckpoint puts it there first.
//
// The error matches ErrExists if the name is taken, ErrInvalidName, or ErrNotExist if there is no
// such branch. If ctx ends first, or the object store fails, the checkpoint is there or not.
//
// It is six requests if the branch was just flushed, however large it is; see docs/object-storage.md.
func (o *Config) PinCheckpoint(ctx context.Context, name string) (CheckpointInfo, error) {
	of, err := o.options()
	if err != nil {
		return CheckpointInfo{}, err
	}
	return branch.CreateCheckpoint(ctx, of, name)
}

// Checkpoints returns the checkpoints of the branch, by name: a LIST, and a GET for each.
func (o *Config) Checkpoints(ctx context.Context) ([]CheckpointInfo, error) {
	of, err := o.options()
	if err != nil {
		return nil, err
	}
	return branch.Checkpoints(ctx, of)
}

// DropCheckpoint deletes a checkpoint of the branch. Files that nothing else needs are deleted by the branch's writer,
// the next time that it deletes any. Branches that were cloned from the checkpoint keep what they need. A DB that has
// it open may find that files are gone (ErrStale), and then by Refresh that it was dropped (ErrNotExist). The error
// matches ErrNotExist if there is none of that name. After any other, call it again.
func (o *Config) DropCheckpoint(ctx context.Context, name string) error {
	of, err := o.options()
	if err != nil {
		return err
	}
	return branch.DropCheckpoint(ctx, of, name)
}

// Clone makes a branch that begins as this one is now, as PinCheckpoint finds it, or as its Checkpoint is if that is
// set. The two share files, and none is copied; each then goes its own way, with its own writer, readers and
// checkpoints. Open the new one by setting Branch. A clone can be cloned.
//
// Files that the clone needs stay, whatever becomes of the branch and of the checkpoint, until
// compactions of the clone have replaced all of them. Until then the branch cannot be dropped.
//
// The error matches ErrExists if there is a branch of that name, ErrInvalidName, or ErrNotExist if
// this branch or the checkpoint is not there. After any other, there is no such branch: call it again.
// But if the object store's answer to the last request was lost, it may be there.
//
// It is eight requests or so, however large the branch is; see docs/object-storage.md.
func (o *Config) Clone(ctx context.Context, name string) error {
	of, err := o.options()
	if err != nil {
		return err
	}
	return branch.Clone(ctx, of, name)
}

// Branches returns all branches of the store except the main one, by name: a LIST, and a GET and a LIST for each. Of
// o, only Store matters.
func (o *Config) Branches(ctx context.Context) (all []BranchInfo, err error) {
	of, err := o.options()
	if err != nil {
		return nil, err
	}
	found, err := branch.Branches(ctx, of)
	for _, b := range found {
		all = append(all, BranchInfo(b))
	}
	return all, err
}

// DropBranch deletes a branch with its checkpoints. Its writer gets ErrFenced, and its readers find that files are
// gone (ErrStale), and then by Refresh that the branch is (ErrNotExist). Of o, only Store matters.
//
// The error matches ErrInUse if branches that were cloned from it need its files, or files that it got from its own
// parent. It names them: drop those first, or compact them whole. It matches ErrNotExist if there is no such branch,
// and ErrInvalidName for the main one. After any other error the branch is there as it was, or it can be opened no
// more: call DropBranch again.
func (o *Config) DropBranch(ctx context.Context, name string) error {
	of, err := o.options()
	if err != nil {
		return err
	}
	return branch.DropBranch(ctx, of, name)
}

// options returns the settings that matter without a DB.
func (o *Config) options() (branch.Options, error) {
	if o.Store == nil {
		return branch.Options{}, invalidf("Objects.Store is nil")
	}
	return o.branch(), nil
}
