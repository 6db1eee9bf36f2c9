package remote

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

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
	f := newFamily(o)
	faults, lists := objstoretest.NewFaults(mem, 1), new(atomic.Int64)
	faults.Inject(func(c objstoretest.Call) objstoretest.Fault {
		if c.Kind == objstore.List && c.Key == "checkpoint/main/c@" {
			if lists.Add(1) == 2 { // the first checkpoint is there
				of := o
				of.Checkpoint = "c"
				require.NoError(t, Clone(t.Context(), of, "b"))
				now, err := readSaved(t.Context(), f.sequence("", 0))
				require.NoError(t, err)
				key := stateKey("", "c", 1)
				require.NoError(t, f.put(t.Context(), key, now.encode(key, savedHead{store: 1, number: 1})))
				require.NoError(t, f.put(t.Context(), key+confirmed, nil))
			}
		}
		return objstoretest.Fault{}
	})
	first := o
	first.Objects = faults
	_, err := CreateCheckpoint(t.Context(), first, "c")
	require.ErrorIs(t, err, ErrExists)
	found, err := f.checkpoints(t.Context(), "checkpoint/")
	require.NoError(t, err)
	byNumber := map[uint64][]string{}
	for _, c := range found {
		byNumber[c.number] = append(byNumber[c.number], c.name)
	}
	require.Len(t, found, 3)
	require.Equal(t, []string{"c"}, byNumber[1])
	for _, c := range found {
		require.False(t, c.confirmed && c.number != 1)
		if c.number != 1 {
			require.ElementsMatch(t, []string{"", "c"}, byNumber[c.number], "the pin, and what it was made from")
		}
	}
}
