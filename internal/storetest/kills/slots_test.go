package kills

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
)

const (
	slotOfCopy = "copy"
	endOfCopy  = "end"      // a copy that has this key is whole
	positionOf = "position" // a key of a copy: the last write that it has
)

func init() {
	children["write beside a slot"] = writeBesideASlot
	children["consume"] = consumeUntilKilled
}

// slotOptions are those of the store and of its copy.
func slotOptions(round int) *kv.Options {
	return &kv.Options{Merger: kv.Append(","), MemtableSize: 64 << 10, SeparateFrom: 1000,
		SeparateAtCommit: round%2 == 0, L0CompactionThreshold: 2}
}

// writeBesideASlot is the child that writes until it is killed, durable and not.
func writeBesideASlot(dir string) error {
	round := storetest.EnvInt(storetest.ChildSeedEnv, 0)
	rng := rand.New(rand.NewPCG(uint64(round), 615))
	db, err := kv.Open(dir, slotOptions(round))
	if err != nil {
		return err
	}
	levels := []*kv.WriteOptions{kv.Sync, kv.NoSync, kv.Async}
	for err == nil {
		b := db.NewBatch()
		key := fmt.Appendf(nil, "key/%03d", rng.IntN(200))
		switch n := rng.IntN(40); {
		case n == 0:
			err = db.Flush(context.Background())
		case n == 1:
			err = db.Compact(context.Background(), nil, nil)
		case n < 4:
			err = b.DeleteRange(key, fmt.Appendf(nil, "key/%03d", rng.IntN(200)))
		case n < 10:
			err = b.Set(key, storetest.RandomBytes(rng, rng.IntN(20_000)))
		default:
			for range 1 + rng.IntN(3) {
				err = errors.Join(err, b.Merge(key, fmt.Append(nil, rng.IntN(100))))
			}
		}
		// In some rounds nothing but the consumer has writes synced.
		err = errors.Join(err, b.Commit(levels[(round+rng.IntN(1+round%3))%3]))
	}
	return err
}

// consumeUntilKilled is the child that keeps a copy of a store which another process writes. It prints a line for each
// change that the copy has.
func consumeUntilKilled(dir string) (err error) {
	to, err := kv.Open(dir+"-copy", slotOptions(0))
	if err != nil {
		return err
	}
	view, err := kv.OpenReadOnly(dir, slotOptions(0))
	if err != nil {
		return err
	}
	slot, err := view.OpenSlot(slotOfCopy)
	if err != nil {
		return err
	}
	at, err := to.Get([]byte(positionOf))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		err = beginCopy(view, slot, to)
	case err == nil:
		var n uint64
		if n, err = strconv.ParseUint(string(at), 10, 64); err == nil {
			err = slot.Skip(n)
		}
	}
	for failed := 0; err == nil && failed < 100; failed++ {
		for c, cErr := range slot.Changes(context.Background()) {
			b := to.NewBatch()
			if err = cErr; err == nil {
				err = c.Replay(b)
			}
			if err != nil {
				break
			}
			if err = errors.Join(setPosition(b, c.Last()), b.Commit(kv.NoSync)); err != nil {
				return err
			}
			if failed = 0; c.Last()%7 == 0 {
				err = errors.Join(view.Refresh(context.Background()), to.Sync(context.Background()), slot.Ack(c.Last()))
			}
			if err != nil {
				return err
			}
			fmt.Println(c.Last())
			if ok, err := to.Has([]byte(endOfCopy)); ok || err != nil {
				return errors.Join(err, slot.Close(), view.Close(), to.Close())
			}
		}
		if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, kv.ErrCorruption) {
			err = nil // another writer has copied the log
		}
	}
	return err
}

func setPosition(b *kv.Batch, n uint64) error { return b.Set([]byte(positionOf), fmt.Append(nil, n)) }

// beginCopy copies what the store has.
func beginCopy(view *kv.DB, slot *kv.Slot, to *kv.DB) error {
	if err := to.DeleteRange(nil, nil, kv.NoSync); err != nil { // what an attempt has left that was killed
		return err
	}
	snap, err := view.SnapshotOf(context.Background(), slot)
	if err != nil {
		return err
	}
	b := to.NewBatch()
	var readErr error
	for k, v := range snap.All(nil, &readErr) {
		if err := b.Set(k, v); err != nil {
			return err
		}
	}
	err = errors.Join(readErr, setPosition(b, slot.Position()), b.Commit(kv.Sync), snap.Close())
	return errors.Join(err, slot.Ack(slot.Position()))
}

// TestAConsumerAndItsWriterAreKilled kills a writer, and a consumer in another process, in turns and together. The copy
// that the consumer keeps has each write once in the end: operands show one that came twice.
func TestAConsumerAndItsWriterAreKilled(t *testing.T) {
	t.Parallel()
	r := &followRun{t: t, dir: filepath.Join(t.TempDir(), "store")}
	db, err := kv.Open(r.dir, slotOptions(0))
	require.NoError(t, err)
	slot, snap, err := db.CreateSlot(t.Context(), slotOfCopy)
	require.NoError(t, err)
	require.NoError(t, errors.Join(snap.Close(), slot.Close(), db.Close()))
	rng := rand.New(rand.NewPCG(8, 63))
	writer, consumer := r.start("write beside a slot", 0), r.start("consume", 0)
	changes := 0
	for round := range max(scale.Count(10, 100), 6) {
		n := 1 + rng.IntN(100)
		require.Equal(t, n, consumer.read(n), "round %d: the consumer failed", round)
		changes += n
		if round%3 != 0 {
			r.kill(consumer)
		}
		if round%3 != 1 {
			r.kill(writer)
			writer = r.start("write beside a slot", round+1)
		}
		if round%3 != 0 {
			consumer = r.start("consume", round)
		}
	}
	r.kill(writer)
	db, err = kv.Open(r.dir, slotOptions(1))
	require.NoError(t, err)
	require.ErrorIs(t, db.DropSlot(slotOfCopy), kv.ErrLocked)
	require.NoError(t, db.Set([]byte(endOfCopy), nil, kv.NoSync))
	for consumer.lines.Scan() {
		changes++
	}
	require.NoError(t, consumer.cmd.Wait())
	to, err := kv.Open(r.dir+"-copy", slotOptions(1))
	require.NoError(t, err)
	require.NoError(t, to.Delete([]byte(positionOf), kv.NoSync))
	want := storetest.Model{}
	for k, v := range db.All(nil, &err) {
		want[string(k)] = string(v)
	}
	require.NoError(t, err)
	storetest.RequireContents(t, want, to)
	require.Empty(t, db.Slots()[0].Lost)
	require.NoError(t, db.DropSlot(slotOfCopy))
	_, err = os.Stat(filepath.Join(r.dir, "CONSUMER-"+slotOfCopy))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, errors.Join(to.Close(), db.Close()))
	t.Logf("%d changes", changes)
}
