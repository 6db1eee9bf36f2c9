package engine

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
)

// TestTheSlotsConsumerIsChecked has it pass over a write, or take one twice, when the store was opened again.
func TestTheSlotsConsumerIsChecked(t *testing.T) {
	v := newValues(t)
	for _, wrong := range []uint64{0, 1, ^uint64(0)} {
		dir := filepath.Join(t.TempDir(), "store")
		for _, wrong := range []uint64{0, wrong} {
			live, err := Open(SiftKVSlotName, dir, settings)
			require.NoError(t, err)
			fill(t, live, v, 1000)
			store := live.(*slottedStore)
			require.EqualValues(t, 1000, store.seen.Load(), "settled, it has all")
			require.NoError(t, store.Delete(key(0)))
			require.NoError(t, store.DeleteRange(key(2), key(4)))
			store.seen.Add(wrong)
			if err := store.Close(); wrong == 0 {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, bench.ErrWrongAnswer)
			}
		}
	}
}

// TestALostSlotEndsTheRun names the loss, which is no wrong answer.
func TestALostSlotEndsTheRun(t *testing.T) {
	live, err := Open(SiftKVSlotName, filepath.Join(t.TempDir(), "store"), settings)
	require.NoError(t, err)
	store := live.(*slottedStore)
	require.NoError(t, store.slot.Close())
	<-store.ended
	require.NoError(t, store.Set(key(0), nil))
	err = store.Close()
	require.ErrorContains(t, err, "siftkv: changes: siftkv: the slot: ")
	require.NotErrorIs(t, err, bench.ErrWrongAnswer)
}
