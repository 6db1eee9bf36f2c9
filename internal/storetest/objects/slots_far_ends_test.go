package objects

import (
	"errors"
	iofs "io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// A consumer on another machine learns that its slot was dropped, or is lost, and no slot of its name takes it over.
func TestASlotOnAnotherMachineEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(f *far) error{
		"dropped": func(f *far) error { return f.db.DropSlot(followedSlot) },
		"another": func(f *far) error {
			err := f.db.DropSlot(followedSlot)
			slot, snap, failed := f.db.CreateSlot(t.Context(), followedSlot)
			return errors.Join(err, failed, snap.Close(), slot.Close())
		},
		"another of the same history": func(f *far) error {
			keep, snap, err := f.db.CreateSlot(t.Context(), "keep")
			err = errors.Join(err, snap.Close(), keep.Close(), f.db.DropSlot(followedSlot))
			slot, snap, failed := f.db.CreateSlot(t.Context(), followedSlot)
			return errors.Join(err, failed, snap.Close(), slot.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := objstore.NewMem()
			f := newFar(t, 1, s)
			require.NoError(t, errors.Join(f.write(), f.write(), f.db.Flush(t.Context()), f.consume(s), f.takeAll()))
			require.NoError(t, f.slot.Ack(f.position-1))
			require.NoError(t, errors.Join(f.write(), f.write(), f.db.Flush(t.Context())))
			require.NoError(t, end(f))
			ended := func(err error) bool {
				return errors.Is(err, iofs.ErrNotExist) || errors.Is(err, kv.ErrSlotLost) ||
					errors.Is(err, objects.ErrFenced)
			}
			err := f.slot.Ack(f.position)
			require.True(t, ended(err), err)
			failed := false
			for _, err := range f.slot.Changes(t.Context()) {
				failed = ended(err)
				require.True(t, failed, err)
			}
			require.True(t, failed)
			if slots := f.db.Slots(); len(slots) > 0 {
				last := slots[len(slots)-1]
				require.NoError(t, errors.Join(f.write(), f.db.Flush(t.Context())))
				require.Equal(t, last.Acked, f.db.Slots()[len(slots)-1].Acked)
			}
		})
	}
}

// A consumer on another machine that is too far behind has lost its slot, whether it is open or opens it then.
func TestASlotOnAnotherMachineIsOverrun(t *testing.T) {
	t.Parallel()
	s := objstore.NewMem()
	db := openObjects(t, s, &kv.Options{MaxSlotBytes: 100 << 10})
	slot, snap, err := db.CreateSlot(t.Context(), followedSlot)
	require.NoError(t, errors.Join(err, snap.Close(), slot.Close()))
	view, err := kv.OpenReadOnly("", &kv.Options{Objects: &objects.Config{Store: s}, PollInterval: time.Millisecond})
	require.NoError(t, err)
	far, err := view.OpenSlot(followedSlot)
	require.NoError(t, err)
	value := make([]byte, 60<<10)
	for i := range value {
		value[i] = byte(i * i >> 3)
	}
	for range 3 {
		require.NoError(t, errors.Join(db.Set([]byte("key"), value, kv.Sync), db.Flush(t.Context())))
	}
	for _, err := range far.Changes(t.Context()) {
		require.ErrorIs(t, err, kv.ErrSlotLost)
	}
	_, err = view.OpenSlot(followedSlot)
	require.ErrorIs(t, err, kv.ErrSlotLost)
	require.NotEmpty(t, view.Slots()[0].Lost)
	require.NoError(t, errors.Join(view.Close(), db.DropSlot(followedSlot), db.Close()))
}

// Ingests ask what a consumer on another machine has acknowledged before they give up what it may need.
func TestIngestsLoseNoSlotOnAnotherMachine(t *testing.T) {
	t.Parallel()
	s := objstore.NewMem()
	f := newFar(t, 1, s)
	require.NoError(t, f.db.Close())
	f.db = openObjects(t, s, &kv.Options{MaxSlotBytes: 1})
	require.NoError(t, f.consume(s))
	for range 5 {
		require.NoError(t, errors.Join(f.ingest(), f.takeAll(), f.slot.Ack(f.position)))
	}
	require.Empty(t, f.db.Slots()[0].Lost)
	for range 4 {
		require.NoError(t, f.ingest())
	}
	require.NotEmpty(t, f.db.Slots()[0].Lost)
}
