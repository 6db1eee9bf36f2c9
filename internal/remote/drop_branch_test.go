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
	l, err := manifest.Create(f, f.o.Root, 2, &manifest.Edit{StoreID: 1, LogNum: 1, Added: added})
	require.NoError(t, err)
	require.NoError(t, errors.Join(l.Close(), lock.Close(), f.Close()))
}

// cloneOfACheckpoint makes a store with a branch that was made from the checkpoint c, and returns the options of both.
func cloneOfACheckpoint(t *testing.T, s objstore.Store, branch string) (o, checkpoint FSOptions) {
	t.Helper()
	startModelStore(t, s)
	o = branchOptions(s, "")
	_, err := CreateCheckpoint(t.Context(), o, "c")
	require.NoError(t, err)
	checkpoint = o
	checkpoint.Checkpoint = "c"
	require.NoError(t, Clone(t.Context(), checkpoint, branch))
	return o, checkpoint
}

// cloneOfADroppedCheckpoint is cloneOfACheckpoint with the checkpoint dropped.
func cloneOfADroppedCheckpoint(t *testing.T, s objstore.Store, branch string) FSOptions {
	t.Helper()
	o, _ := cloneOfACheckpoint(t, s, branch)
	require.NoError(t, DropCheckpoint(t.Context(), o, "c"))
	return o
}

// A branch was opened more than a thousand times since it was last written to, and a drop of it breaks off after it has
// deleted what it had: another goes on.
func TestADropGoesOnBehindManyFences(t *testing.T) {
	mem := objstore.NewMem()
	startModelStore(t, mem)
	o := branchOptions(mem, "")
	require.NoError(t, Clone(t.Context(), o, "b"))
	f := newFamily(o)
	b, err := f.branch(t.Context(), "b")
	require.NoError(t, err)
	v, err := f.sequence(b.site, b.store).Tail(t.Context())
	require.NoError(t, err)
	for range 1001 { // more than a page of a listing
		_, err := f.sequence(b.site, b.store).FenceOff(t.Context(), v, firstSlot)
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
	require.Error(t, DropBranch(t.Context(), cut, "b"))
	require.NoError(t, DropBranch(t.Context(), o, "b"))
	err = DropBranch(t.Context(), o, "b")
	require.ErrorIs(t, err, base.ErrNotExist)
	require.NotErrorIs(t, err, fs.ErrNotExist, "a view would take the branch for a file that is gone, and try again")
}

// A branch was made from a checkpoint that was dropped then, and the drop of the branch broke off. Another drop, which
// clears what it finds of it, gives up the checkpoint too.
func TestADropGivesUpTheCheckpointsOfBranchesThatAreGone(t *testing.T) {
	mem := objstore.NewMem()
	o := cloneOfADroppedCheckpoint(t, mem, "x")
	require.NoError(t, Clone(t.Context(), o, "y"))
	faults := objstoretest.NewFaults(mem, 1)
	faults.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
		f.Cut = c.Kind == objstore.Delete // nobody can open the branch any more
		return f
	})
	cut := o
	cut.Objects, cut.Patience = faults, 1
	require.Error(t, DropBranch(t.Context(), cut, "x"))
	require.NoError(t, DropBranch(t.Context(), o, "y"))
	require.NoError(t, DropBranch(t.Context(), o, "x"))
	found, err := newFamily(o).checkpoints(t.Context(), "checkpoint/")
	require.NoError(t, err)
	require.Empty(t, found)
}

// A branch gives up its pin, or is dropped, and with the pin goes the dropped checkpoint that it was made from. Broken
// off at any request, and done again, that leaves nothing.
func TestADroppedCheckpointGoesWithThePinThatKeptIt(t *testing.T) {
	ways := map[string]func(o FSOptions) error{
		"released": func(o FSOptions) error {
			f := newFamily(o)
			b, err := f.branch(t.Context(), "x")
			if err != nil {
				return err
			}
			p := newPins(f, b.site)
			return errors.Join(p.look(t.Context()), p.releaseOwn(t.Context()))
		},
		"dropped": func(o FSOptions) error { return DropBranch(t.Context(), o, "x") },
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
				found, err := newFamily(o).checkpoints(t.Context(), "checkpoint/")
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
	require.NoError(t, Clone(t.Context(), o, "b")) // its pin stands between those of the others
	z, err := newFamily(o).branch(t.Context(), "z")
	require.NoError(t, err)
	s := &midListing{Store: mem, prefix: "checkpoint/b-"}
	slow := o
	slow.Objects = s
	p := newPins(newFamily(slow), z.site)
	require.NoError(t, p.look(t.Context()))
	s.call = func() {
		require.NoError(t, Clone(t.Context(), from, "a"))
		require.NoError(t, DropCheckpoint(t.Context(), o, "c"))
	}
	require.NoError(t, p.releaseOwn(t.Context()))
	require.Nil(t, s.call)
	found, err := newFamily(o).checkpoints(t.Context(), "checkpoint/main/c@")
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.NoError(t, DropBranch(t.Context(), o, "a"))
	found, err = newFamily(o).checkpoints(t.Context(), "checkpoint/")
	require.NoError(t, err)
	require.Len(t, found, 1, "the pin of b alone")
}
