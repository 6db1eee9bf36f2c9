package remote

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/remote/branch"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// startModelStore makes a store with a sorted file.
func startModelStore(t *testing.T, s objstore.Store) {
	t.Helper()
	f := NewFS(branchOptions(s, ""))
	lock, err := f.Lock(f.join(manifest.LockName), vfs.Exclusive)
	require.NoError(t, err)
	require.NoError(t, writeModelTable(f, 1))
	added := []manifest.AddedTable{{Table: modelTable(1)}}
	l, err := manifest.Create(f, objectdir.Root, 2, &manifest.Edit{StoreID: 1, LogNum: 1, Added: added})
	require.NoError(t, err)
	require.NoError(t, errors.Join(l.Close(), lock.Close(), f.Close()))
}

// cloneOfACheckpoint makes a store with a branch that was made from the checkpoint c, and returns the options of both.
func cloneOfACheckpoint(t *testing.T, s objstore.Store, name string) (o, checkpoint FSOptions) {
	t.Helper()
	startModelStore(t, s)
	o = branchOptions(s, "")
	_, err := branch.CreateCheckpoint(t.Context(), o.Options, "c")
	require.NoError(t, err)
	checkpoint = o
	checkpoint.Checkpoint = "c"
	require.NoError(t, branch.Clone(t.Context(), checkpoint.Options, name))
	return o, checkpoint
}

// cloneOfADroppedCheckpoint is cloneOfACheckpoint with the checkpoint dropped.
func cloneOfADroppedCheckpoint(t *testing.T, s objstore.Store, name string) FSOptions {
	t.Helper()
	o, _ := cloneOfACheckpoint(t, s, name)
	require.NoError(t, branch.DropCheckpoint(t.Context(), o.Options, "c"))
	return o
}

// A branch was opened more than a thousand times since it was last written to, and a drop of it breaks off after it has
// deleted what it had: another goes on.
func TestADropGoesOnBehindManyFences(t *testing.T) {
	scale.OneGoroutine(t, "one goroutine; TestModelOfBranches has several")
	mem := objstore.NewMem()
	startModelStore(t, mem)
	o := branchOptions(mem, "")
	require.NoError(t, branch.Clone(t.Context(), o.Options, "b"))
	f := branch.NewSet(o.Options)
	at, store, err := f.Locate(t.Context(), "b")
	require.NoError(t, err)
	v, err := f.Sequence(at, store).Tail(t.Context())
	require.NoError(t, err)
	for range 1001 { // more than a page of a listing
		_, err := f.Sequence(at, store).FenceOff(t.Context(), v, 2)
		require.NoError(t, err)
		v.Last++
	}
	faults := objstoretest.NewFaults(mem, 1)
	faults.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
		if c.Kind == objstore.Delete {
			f.Cut = true
		}
		return f
	})
	cut := o
	cut.Objects, cut.Patience = faults, 1
	require.Error(t, branch.DropBranch(t.Context(), cut.Options, "b"))
	require.NoError(t, branch.DropBranch(t.Context(), o.Options, "b"))
	err = branch.DropBranch(t.Context(), o.Options, "b")
	require.ErrorIs(t, err, base.ErrNotExist)
	require.NotErrorIs(t, err, fs.ErrNotExist, "a view would take the branch for a file that is gone, and try again")
}

// A branch was made from a checkpoint that was dropped then, and the drop of the branch broke off. Another drop, which
// clears what it finds of it, gives up the checkpoint too.
func TestADropGivesUpTheCheckpointsOfBranchesThatAreGone(t *testing.T) {
	mem := objstore.NewMem()
	o := cloneOfADroppedCheckpoint(t, mem, "x")
	require.NoError(t, branch.Clone(t.Context(), o.Options, "y"))
	faults := objstoretest.NewFaults(mem, 1)
	faults.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
		f.Cut = c.Kind == objstore.Delete // nobody can open the branch any more
		return f
	})
	cut := o
	cut.Objects, cut.Patience = faults, 1
	require.Error(t, branch.DropBranch(t.Context(), cut.Options, "x"))
	require.NoError(t, branch.DropBranch(t.Context(), o.Options, "y"))
	require.NoError(t, branch.DropBranch(t.Context(), o.Options, "x"))
	found, err := branch.NewSet(o.Options).Checkpoints(t.Context(), "checkpoint/")
	require.NoError(t, err)
	require.Empty(t, found)
}

// A branch gives up its pin, or is dropped, and with the pin goes the dropped checkpoint that it was made from. Broken
// off at any request, and done again, that leaves nothing.
func TestADroppedCheckpointGoesWithThePinThatKeptIt(t *testing.T) {
	ways := map[string]func(o FSOptions) error{
		"released": func(o FSOptions) error {
			f := branch.NewSet(o.Options)
			at, _, err := f.Locate(t.Context(), "x")
			if err != nil {
				return err
			}
			p := branch.NewRetained(f, at)
			return errors.Join(p.Update(t.Context()), p.ReleaseOwn(t.Context()))
		},
		"dropped": func(o FSOptions) error { return branch.DropBranch(t.Context(), o.Options, "x") },
	}
	for name, giveUp := range ways {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			for n, done := int32(1), false; !done; n++ {
				mem := objstore.NewMem()
				o := cloneOfADroppedCheckpoint(t, mem, "x")
				faults := objstoretest.NewFaults(mem, 1)
				requests.Store(0)
				faults.Inject(func(objstoretest.Call) (f objstoretest.Fault) {
					f.Cut = requests.Add(1) >= n
					return f
				})
				cut := o
				cut.Objects, cut.Patience = faults, 1
				if done = giveUp(cut) == nil; !done {
					if err := giveUp(o); !errors.Is(err, base.ErrNotExist) { // only the last reply was lost
						require.NoError(t, err)
					}
				}
				found, err := branch.NewSet(o.Options).Checkpoints(t.Context(), "checkpoint/")
				require.NoError(t, err)
				require.Empty(t, found, "broken off at request %d", n)
			}
			require.Greater(t, requests.Load(), int32(3))
		})
	}
}

// A midListing calls a function in the middle of a listing of checkpoints, which is no snapshot: when it has shown a
// key that begins with a prefix.
type midListing struct {
	objstore.Store
	prefix string
	call   func()
}

func (p *midListing) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		for o, err := range p.Store.List(ctx, prefix, after) {
			if !yield(o, err) {
				return
			}
			if err == nil && p.call != nil && strings.HasPrefix(o.Key, p.prefix) {
				call := p.call
				p.call = nil
				call()
			}
		}
	}
}

// While a branch looks who needs the checkpoint that it was made from, another is made from it, whose place the listing
// has passed, and then the checkpoint is dropped. It stays: until the new branch's pin is seen by all, nothing else
// names its files.
func TestAPinThatAListingHasPassedKeepsItsCheckpoint(t *testing.T) {
	mem := objstore.NewMem()
	o, from := cloneOfACheckpoint(t, mem, "z")
	require.NoError(t, branch.Clone(t.Context(), o.Options, "b")) // its pin stands between those of the others
	z, _, err := branch.NewSet(o.Options).Locate(t.Context(), "z")
	require.NoError(t, err)
	s := &midListing{Store: mem, prefix: "checkpoint/b-"}
	slow := o
	slow.Objects = s
	p := branch.NewRetained(branch.NewSet(slow.Options), z)
	require.NoError(t, p.Update(t.Context()))
	s.call = func() {
		require.NoError(t, branch.Clone(t.Context(), from.Options, "a"))
		require.NoError(t, branch.DropCheckpoint(t.Context(), o.Options, "c"))
	}
	require.NoError(t, p.ReleaseOwn(t.Context()))
	require.Nil(t, s.call)
	found, err := branch.NewSet(o.Options).Checkpoints(t.Context(), "checkpoint/main/c@")
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.NoError(t, branch.DropBranch(t.Context(), o.Options, "a"))
	found, err = branch.NewSet(o.Options).Checkpoints(t.Context(), "checkpoint/")
	require.NoError(t, err)
	require.Len(t, found, 1, "the pin of b alone")
}
