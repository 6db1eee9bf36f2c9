package objects

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// Of two consumers of a slot the newest has it, be they on other machines or one in the writer's process.
func TestTheNewestConsumerHasASlot(t *testing.T) {
	t.Parallel()
	s := objstore.NewMem()
	f := newFar(t, 1, s)
	require.NoError(t, f.db.Close())
	f.db = openObjects(t, s, nil) // which deletes no list of files before readers have had time to notice
	for range 6 {
		require.NoError(t, errors.Join(f.write(), f.db.Flush(t.Context())))
	}
	changes := func(slot *kv.Slot) []uint64 {
		var all []uint64
		for c, err := range slot.Changes(t.Context()) {
			require.NoError(t, err)
			if all = append(all, c.Last()); c.Last() == f.db.Slots()[0].Acked+f.db.Slots()[0].Behind {
				break
			}
		}
		return all
	}
	require.NoError(t, f.consume(s))
	first := f.slot
	all := changes(first)
	require.NoError(t, first.Ack(all[0]))
	require.NoError(t, f.consume(s))
	second := f.slot
	require.Equal(t, all[0], second.Position())
	require.Equal(t, all[1:], changes(second))
	require.ErrorIs(t, first.Ack(all[5]), objects.ErrFenced)
	for _, err := range first.Changes(t.Context()) {
		require.ErrorIs(t, err, objects.ErrFenced)
	}
	require.NoError(t, second.Ack(all[1]))

	own, err := f.db.OpenSlot(followedSlot)
	require.NoError(t, err)
	require.Equal(t, all[1], own.Position())
	require.ErrorIs(t, second.Ack(all[2]), objects.ErrFenced)
	require.Equal(t, all[2:], changes(own))

	require.NoError(t, f.consume(s)) // it should have waited until the slot is closed
	third := f.slot
	require.Equal(t, all[2:], changes(third))
	require.NoError(t, own.Ack(all[3]))
	require.ErrorIs(t, third.Ack(all[2]), objects.ErrFenced)
	require.NoError(t, own.Close())
	require.NoError(t, f.consume(s))
	require.Equal(t, all[3], f.slot.Position())
}

// Whatever the acknowledgement of a consumer on another machine is replaced with, no position comes of it that no
// consumer has acknowledged, and the slot can be dropped and made again.
func TestDamagedAcknowledgements(t *testing.T) {
	t.Parallel()
	newest := func(s objstore.Store) (key string, data []byte) {
		for o, err := range s.List(t.Context(), "slot/"+followedSlot+"/", "") {
			require.NoError(t, err)
			if o.Size != 80 {
				data = make([]byte, o.Size)
				_, err := s.GetRange(t.Context(), o.Key, 0, data)
				require.NoError(t, err)
				return o.Key, data
			}
		}
		return "", nil
	}
	for i := 0; ; i += scale.Stride(7, 1) {
		s := objstore.NewMem()
		f := newFar(t, 1, s)
		require.NoError(t, errors.Join(f.write(), f.write(), f.db.Flush(t.Context()), f.consume(s), f.takeAll()))
		require.NoError(t, f.slot.Ack(f.position))
		key, data := newest(s)
		if i >= len(data) {
			require.Greater(t, i, 100)
			break
		}
		data[i] ^= 1 << (i % 8)
		require.NoError(t, s.Put(t.Context(), key, bytes.NewReader(data), int64(len(data))))
		before := f.db.Slots()[0].Acked
		require.NoError(t, errors.Join(f.write(), f.db.Flush(t.Context())))
		require.Equal(t, before, f.db.Slots()[0].Acked)
		_, err := f.db.OpenSlot(followedSlot)
		require.ErrorIs(t, err, kv.ErrCorruption, i)
		require.ErrorIs(t, f.consume(s), kv.ErrCorruption, i)
		require.NoError(t, f.db.DropSlot(followedSlot))
		slot, snap, err := f.db.CreateSlot(t.Context(), followedSlot)
		require.NoError(t, errors.Join(err, snap.Close()))
		f.acked, f.position = slot.Position(), slot.Position()
		require.NoError(t, slot.Close())
		require.NoError(t, f.consume(s))
	}
}

// A flush looks for the acknowledgements of each closed slot with one LIST. At rest no request is sent.
func TestWhatAClosedSlotCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists := func(slots int) int64 {
			s := storetest.NewCountedStore()
			db := openObjects(t, s, nil)
			for i := range slots {
				slot, snap, err := db.CreateSlot(t.Context(), fmt.Sprint("slot", i))
				require.NoError(t, errors.Join(err, snap.Close(), slot.Close()))
			}
			flush := func() {
				require.NoError(t, errors.Join(db.Set([]byte("key"), nil, kv.Sync), db.Flush(t.Context())))
			}
			flush()
			n := s.Requests(flush)[objstore.List]
			time.Sleep(24 * time.Hour) // what is not needed is deleted
			require.Empty(t, s.Requests(func() { time.Sleep(24 * time.Hour) }))
			require.NoError(t, db.Close())
			return n
		}
		none := lists(0)
		require.Equal(t, []int64{none + 1, none + 2}, []int64{lists(1), lists(2)})
	})
}
