package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
)

// changesOf calls each for the next n changes of a slot, which has them then.
func changesOf(t *testing.T, s *Slot, n int, each func(c *Change)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if n == 0 {
		return
	}
	for c, err := range s.Changes(ctx) {
		require.NoError(t, err)
		each(c)
		require.NoError(t, s.Skip(c.Last()))
		if n--; n == 0 {
			return
		}
	}
}

type listed []string

func (l *listed) add(format string, args ...any) error {
	*l = append(*l, fmt.Sprintf(format, args...))
	return nil
}
func (l *listed) Set(k, v []byte) error           { return l.add("set %s=%.20s/%d", k, v, len(v)) }
func (l *listed) Merge(k, v []byte) error         { return l.add("merge %s=%s", k, v) }
func (l *listed) Delete(k []byte) error           { return l.add("delete %s", k) }
func (l *listed) DeleteRange(lo, hi []byte) error { return l.add("range %s-%s", lo, hi) }
func (l *listed) SetUntil(k, v []byte, e time.Time) error {
	return l.add("until %s=%.20s/%d %d", k, v, len(v), e.UnixMicro())
}

func TestASlotYieldsEachCommit(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, nil)
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("before"), []byte("1"), NoSync))
	slot, snap, err := db.CreateSlot(t.Context(), "index")
	require.NoError(t, err)
	v, err := snap.Get([]byte("before"))
	require.NoError(t, err)
	require.Equal(t, "1", string(v))
	require.NoError(t, snap.Close())
	require.EqualValues(t, 1, slot.Position())
	var want listed
	for i := range 10 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "k%d", i), []byte("v"), NoSync))
		want.Set(fmt.Appendf(nil, "k%d", i), []byte("v"))
		if i%3 == 0 {
			require.NoError(t, db.Flush(t.Context()))
		}
	}
	var got listed
	changesOf(t, slot, 4, func(c *Change) { require.NoError(t, c.Replay(&got)) })
	require.Equal(t, want[:4], got)
	require.NoError(t, slot.Ack(slot.Position()))
	require.Error(t, slot.Ack(slot.Position()+1))
	require.NoError(t, slot.Close())
	_, err = db.OpenSlot("none")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, db.Close())

	for range 2 {
		db, err = Open(dir, nil)
		require.NoError(t, err)
		require.Len(t, db.Slots(), 1)
		t.Logf("%+v", db.Slots())
		slot, err = db.OpenSlot("index")
		require.NoError(t, err)
		_, err = db.OpenSlot("index")
		require.ErrorIs(t, err, ErrLocked)
		got = nil
		changesOf(t, slot, 6, func(c *Change) { require.NoError(t, c.Replay(&got)) })
		require.Equal(t, want[4:], got)
		require.NoError(t, db.Close())
	}
	db, err = Open(dir, nil)
	require.NoError(t, err)
	require.NoError(t, db.DropSlot("index"))
	require.Empty(t, db.Slots())
	require.NoError(t, db.Close())
}

// makeSlot makes a slot, and closes its snapshot.
func makeSlot(t *testing.T, db *DB, name string) *Slot {
	t.Helper()
	slot, snap, err := db.CreateSlot(t.Context(), name)
	require.NoError(t, err)
	require.NoError(t, snap.Close())
	return slot
}

// A slot that was made in an empty store has nothing to wait for.
func TestASlotOfAnEmptyStoreIsAcknowledged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := openDir(t, dir, nil)
	require.NoError(t, makeSlot(t, db, "s").Close())
	view := openView(t, dir, nil)
	for _, d := range []*DB{view, db} {
		slot, err := d.OpenSlot("s")
		require.NoError(t, err)
		require.NoError(t, slot.Ack(0))
		require.NoError(t, slot.Close())
	}
	require.NoError(t, errors.Join(view.Close(), db.Close()))
}

func TestChangesHaveWritesAsTheyWere(t *testing.T) {
	t.Parallel()
	db := openDir(t, t.TempDir(), &Options{Merger: Append(","), SeparateFrom: 1000, SeparateAtCommit: true})
	slot := makeSlot(t, db, "s")
	end := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	large := bytes.Repeat([]byte("large"), 300_000)
	b := db.NewBatch()
	require.NoError(t, errors.Join(b.Set([]byte("a"), []byte("1")), b.SetUntil([]byte("b"), []byte("2"), end),
		b.Merge([]byte("c"), []byte("3")), b.Delete([]byte("d")), b.DeleteRange([]byte("e"), []byte("f")),
		b.DeleteRange([]byte("g"), nil), b.SetUntil([]byte("h"), large[:5000], end)))
	require.NoError(t, b.Commit(NoSync))
	require.NoError(t, db.SetReader(t.Context(), []byte("i"), int64(len(large)), bytes.NewReader(large), NoSync))
	require.NoError(t, db.Update(func(tx *Tx) error {
		return errors.Join(tx.Merge([]byte("c"), []byte("4")), tx.Merge([]byte("c"), []byte("5")))
	}))
	until := func(key string, value []byte) string {
		return fmt.Sprintf("until %s=%.20s/%d %d", key, value, len(value), end.UnixMicro())
	}
	want := []listed{{"set a=1/1", until("b", []byte("2")), "merge c=3", "delete d", "range e-f", "range g-",
		until("h", large[:5000])}, {fmt.Sprintf("set i=%.20s/%d", large, len(large))}, {"merge c=4", "merge c=5"}}
	at := []uint64{7, 8, 10}
	for _, flushed := range []bool{false, true} {
		if flushed { // the same changes, of logs whose writes are in tables
			require.NoError(t, slot.Close())
			require.NoError(t, db.Flush(t.Context()))
			require.NoError(t, db.Compact(t.Context(), nil, nil))
			require.NoError(t, db.Set([]byte("i"), nil, NoSync)) // the large value is garbage
			require.NoError(t, db.Compact(t.Context(), nil, nil))
			var err error
			slot, err = db.OpenSlot("s")
			require.NoError(t, err)
		}
		i := 0
		changesOf(t, slot, 3, func(c *Change) {
			var got listed
			require.NoError(t, c.Replay(&got))
			require.Equal(t, want[i], got)
			require.Equal(t, at[i], c.Last())
			require.False(t, c.Ingested() || c.Empty())
			if i == 1 {
				var w streamed
				require.NoError(t, c.Replay(&w))
				require.Equal(t, large, w.bytes)
			}
			i++
		})
	}
	require.NoError(t, db.Close())
}

// streamed takes large values from a reader.
type streamed struct {
	listed
	bytes []byte
}

func (w *streamed) SetReader(_ []byte, size int64, r io.Reader) (err error) {
	if w.bytes, err = io.ReadAll(r); err == nil && int64(len(w.bytes)) != size {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func TestChangesOfSomeKeys(t *testing.T) {
	t.Parallel()
	db := openDir(t, t.TempDir(), nil)
	slot := makeSlot(t, db, "s")
	b := db.NewBatch()
	require.NoError(t, errors.Join(b.Set([]byte("user/1"), nil), b.Set([]byte("mail/1"), nil)))
	require.NoError(t, b.Commit(NoSync))
	require.NoError(t, db.Set([]byte("mail/2"), make([]byte, 2<<20), NoSync)) // passed over, but told of
	require.NoError(t, db.DeleteRange([]byte("a"), []byte("v"), NoSync))
	require.NoError(t, db.DeleteRange([]byte("a"), []byte("user/"), NoSync))
	require.NoError(t, db.Delete([]byte("user/1"), NoSync))
	var got []listed
	var empty []bool
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for c, err := range slot.Changes(ctx, []byte("user/")) {
		require.NoError(t, err)
		var l listed
		require.NoError(t, c.Replay(&l))
		got, empty = append(got, l), append(empty, c.Empty())
		if c.Last() == 6 {
			break
		}
	}
	require.Equal(t, []listed{{"set user/1=/0"}, nil, {"range a-v"}, {"delete user/1"}}, got)
	require.Equal(t, []bool{false, true, false, false}, empty)
	require.NoError(t, db.Close())
}

func TestASlotIsLostAndTheStoreGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := &Options{MaxSlotBytes: 100 << 10}
	db := openDir(t, dir, o)
	slot := makeSlot(t, db, "s")
	for range 3 {
		require.NoError(t, db.Set([]byte("key"), make([]byte, 60<<10), NoSync))
		require.NoError(t, db.Flush(t.Context()))
	}
	for _, err := range slot.Changes(t.Context()) {
		require.ErrorIs(t, err, ErrSlotLost)
	}
	require.ErrorIs(t, slot.Ack(slot.Position()), ErrSlotLost)
	require.NoError(t, slot.Close())
	require.NoError(t, db.Close())
	db = openDir(t, dir, o)
	_, err := db.OpenSlot("s")
	require.ErrorIs(t, err, ErrSlotLost)
	require.NotEmpty(t, db.Slots()[0].Lost)
	requireNothingKept(t, db)
	require.NoError(t, db.DropSlot("s"))
	require.NoError(t, makeSlot(t, db, "s").Close())
	require.NoError(t, db.Close())
}

func TestCopiesHaveNoSlots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := openDir(t, filepath.Join(dir, "store"), nil)
	slot := makeSlot(t, db, "s")
	set(t, db, "key", "value")
	require.NoError(t, db.Checkpoint(t.Context(), filepath.Join(dir, "checkpoint")))
	var stream bytes.Buffer
	_, err := db.Backup(t.Context(), &stream, BackupMark{})
	require.NoError(t, err)
	require.NoError(t, Restore(t.Context(), &stream, filepath.Join(dir, "restored"), nil))
	for _, name := range []string{"checkpoint", "restored"} {
		backup := openDir(t, filepath.Join(dir, name), nil)
		require.Empty(t, backup.Slots())
		require.NoError(t, backup.Close())
	}
	view := openView(t, filepath.Join(dir, "store"), nil)
	_, _, err = view.CreateSlot(t.Context(), "t")
	require.ErrorIs(t, err, ErrReadOnly)
	require.NoError(t, view.Close())
	waits := make(chan error)
	go func() {
		for _, err := range slot.Changes(t.Context()) {
			if err != nil {
				waits <- err
			}
		}
	}()
	require.NoError(t, db.Close())
	require.ErrorIs(t, <-waits, ErrClosed)
	require.ErrorIs(t, slot.Ack(0), ErrClosed)
	require.NoError(t, slot.Close())
	_, _, err = db.CreateSlot(t.Context(), "t")
	require.ErrorIs(t, err, ErrClosed)
}

func TestBoundsOfSlotsAreChecked(t *testing.T) {
	t.Parallel()
	_, err := Open(t.TempDir(), &Options{MaxSlotBytes: -1})
	require.ErrorIs(t, err, ErrInvalidOptions)
}

// A log that was cut off, or is gone, is damage, and never the end of the changes.
func TestAKeptLogThatIsDamaged(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(path string) error{
		"cut":     func(path string) error { return os.Truncate(path, 100) },
		"empty":   func(path string) error { return os.Truncate(path, 0) },
		"missing": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			db := openDir(t, dir, nil)
			slot := makeSlot(t, db, "s")
			for range 5 {
				set(t, db, "key", "a value of some bytes")
			}
			require.NoError(t, db.Flush(t.Context()))
			set(t, db, "key", "later")
			require.Len(t, db.slots.States(db.seq()), 1)
			part, ok, err := db.slots.After("s", 0)
			require.NoError(t, err)
			require.True(t, ok)
			db.cleaner.Wait()
			require.True(t, part.Log > 0 && !part.Copy)
			require.NoError(t, damage(manifest.Path(dir, manifest.FileKept, part.Log)), "only the slot needs it")
			n := 0
			for c, err := range slot.Changes(t.Context()) {
				if err != nil {
					require.ErrorIs(t, err, ErrCorruption)
					break
				}
				require.LessOrEqual(t, c.Last(), uint64(5))
				n++
			}
			require.Less(t, n, 5)
			require.NoError(t, db.Close())
		})
	}
}

// After a clean close an Open copies no log: it stays, and its blob file with it.
func TestAnOpenAfterACloseKeepsTheLog(t *testing.T) {
	t.Parallel()
	dir, o := t.TempDir(), &Options{SeparateFrom: 1000, SeparateAtCommit: true}
	db := openDir(t, dir, o)
	require.NoError(t, makeSlot(t, db, "s").Close())
	large := bytes.Repeat([]byte("large"), 1000)
	require.NoError(t, db.Set([]byte("a"), large, NoSync))
	require.NoError(t, db.Close())
	db = openDir(t, dir, o)
	part, ok, err := db.slots.After("s", 0)
	require.NoError(t, err)
	require.True(t, ok && !part.Copy && len(part.Files) == 1, "%+v", part)
	require.NoError(t, db.Delete([]byte("a"), NoSync))
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	db.cleaner.Wait()
	slot, err := db.OpenSlot("s")
	require.NoError(t, err)
	var got listed
	changesOf(t, slot, 2, func(c *Change) { require.NoError(t, c.Replay(&got)) })
	require.Equal(t, listed{fmt.Sprintf("set a=%.20s/%d", large, len(large)), "delete a"}, got)
	require.NoError(t, db.Close())
}
