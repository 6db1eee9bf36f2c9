package engine

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/kv"
)

// TestTheSlotsConsumerIsChecked has it count a write less, or one more, when the store was opened again.
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

func TestAConsumerThatFailsEndsTheRun(t *testing.T) {
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

// TestALostSlotEndsTheRun says why it is lost, which is no wrong answer.
func TestALostSlotEndsTheRun(t *testing.T) {
	db, err := kv.Open(filepath.Join(t.TempDir(), "store"), &kv.Options{MaxSlotBytes: 1})
	require.NoError(t, err)
	store, err := withSlot(newSiftKV(db, 1))
	require.NoError(t, err)
	store.end()
	<-store.ended
	for i := range 3 {
		require.NoError(t, store.Set(key(i), nil))
		require.NoError(t, db.Flush(t.Context()))
	}
	err = store.Close()
	require.ErrorIs(t, err, kv.ErrSlotLost)
	require.ErrorContains(t, err, "MaxSlotBytes")
	require.NotErrorIs(t, err, bench.ErrWrongAnswer)
}

// TestWritesBeforeTheOpeningAreNotCounted kills a store whose consumer has acknowledged nothing.
func TestWritesBeforeTheOpeningAreNotCounted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	for range 2 {
		db, err := kv.Open(dir, nil)
		require.NoError(t, err)
		store, err := withSlot(newSiftKV(db, 1))
		require.NoError(t, err)
		require.NoError(t, store.Set(key(0), nil))
		require.NoError(t, store.Settle(t.Context()))
		store.end()
		<-store.ended
		require.NoError(t, db.Close())
	}
}
