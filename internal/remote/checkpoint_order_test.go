package remote

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/remote/branch"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// Two make a checkpoint of the same name at the same time, and a branch is made from that of the one before he sees the
// other's. What he gives up then stays, as a checkpoint that was dropped does, as long as the branch has its pin: a
// listing that passed the pin's place too early shows it.
func TestACheckpointThatIsGivenUpStaysForItsPin(t *testing.T) {
	mem := objstore.NewMem()
	startModelStore(t, mem)
	o := branchOptions(mem, "")
	f := branch.NewSet(o.Options)
	faults, lists := objstoretest.NewFaults(mem, 1), new(atomic.Int64)
	faults.Inject(func(c objstoretest.Call) objstoretest.Fault {
		if c.Kind == objstore.List && c.Key == "checkpoint/main/c@" {
			if lists.Add(1) == 2 { // the first checkpoint is there
				of := o
				of.Checkpoint = "c"
				require.NoError(t, branch.Clone(t.Context(), of.Options, "b"))
				now, err := branch.ReadSnapshot(t.Context(), f.Sequence("", 0))
				require.NoError(t, err)
				const key = "checkpoint/main/c@0000000000000001"
				state := now.Encode(key, branch.Header{Store: 1, Number: 1})
				require.NoError(t, mem.PutIfAbsent(t.Context(), key, state))
				require.NoError(t, mem.PutIfAbsent(t.Context(), key+"-ok", nil))
			}
		}
		return objstoretest.Fault{}
	})
	first := o
	first.Objects = faults
	_, err := branch.CreateCheckpoint(t.Context(), first.Options, "c")
	require.ErrorIs(t, err, branch.ErrExists)
	found, err := f.Checkpoints(t.Context(), "checkpoint/")
	require.NoError(t, err)
	byNumber := map[uint64][]string{}
	for _, c := range found {
		byNumber[c.Number] = append(byNumber[c.Number], c.Name)
	}
	require.Len(t, found, 3)
	require.Equal(t, []string{"c"}, byNumber[1])
	for _, c := range found {
		require.False(t, c.Confirmed && c.Number != 1)
		if c.Number != 1 {
			require.ElementsMatch(t, []string{"", "c"}, byNumber[c.Number], "the pin, and what it was made from")
		}
	}
}
