package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// What TestASlotYieldsEachCommit holds of a directory holds of an object store, whoever opens it, and what an
// acknowledgement costs is one request; a slot at rest costs none.
func TestASlotOfAnObjectStoreYieldsEachCommit(t *testing.T) {
	s := storetest.NewCountedStore()
	db := openObjects(t, s, &Options{L0CompactionThreshold: 10}) // no compaction sends requests meanwhile
	require.NoError(t, db.Set([]byte("before"), []byte("1"), NoSync))
	slot, snap, err := db.CreateSlot(t.Context(), "index")
	require.NoError(t, err)
	v, err := snap.Get([]byte("before"))
	require.NoError(t, err)
	require.Equal(t, "1", string(v))
	require.NoError(t, snap.Close())
	require.EqualValues(t, 1, slot.Position())
	var want, got listed
	for i := range 10 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "k%d", i), []byte("v"), NoSync))
		require.NoError(t, want.Set(fmt.Appendf(nil, "k%d", i), []byte("v")))
		if i%3 == 0 {
			require.NoError(t, db.Flush(t.Context()))
		}
	}
	changesOf(t, slot, 4, func(c *Change) { require.NoError(t, c.Replay(&got)) })
	require.Equal(t, want[:4], got)
	require.NoError(t, db.commits.SyncVisible(t.Context()))
	for ack, puts := range []int64{2, 1, 0} { // the first ends what was flushed with the first change
		require.Equal(t, puts, s.Requests(func() {
			require.NoError(t, slot.Ack(3+min(uint64(ack), 1)))
		})[objstore.PutIfAbsent], "a slot's position is in the list of files")
	}
	require.Equal(t, map[objstore.Kind]int64{objstore.Get: 1}, s.Requests(func() {
		got = nil
		changesOf(t, slot, 3, func(c *Change) { require.NoError(t, c.Replay(&got)) })
	}), "of a log in tables there is one object")
	require.Empty(t, s.Requests(func() { db.Slots() }))
	require.NoError(t, slot.Ack(slot.Position()))
	require.NoError(t, slot.Close())
	require.NoError(t, db.Close())
	for i := range 3 {
		if db = openObjects(t, s, nil); i == 1 { // the writer before is fenced, and knows nothing of it
			defer func(db *DB) { require.Error(t, errors.Join(db.Set([]byte("k"), nil, Sync), db.Close())) }(db)
		}
		require.Len(t, db.Slots(), 1)
		slot, err = db.OpenSlot("index")
		require.NoError(t, err)
		_, err = db.OpenSlot("index")
		require.ErrorIs(t, err, ErrLocked)
		got = nil
		changesOf(t, slot, 3, func(c *Change) { require.NoError(t, c.Replay(&got)) })
		require.Equal(t, want[7:], got)
		if i != 1 {
			require.NoError(t, db.Close())
		}
	}
	db = openObjects(t, s, nil)
	require.NoError(t, db.DropSlot("index"))
	require.Empty(t, db.Slots())
	_, err = db.OpenSlot("index")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, db.Close())
}

// A log on the local disk that is given up takes all slots with it: their consumers may have its writes. So it stays.
func TestSlotsAreLostWithALogThatIsAbandoned(t *testing.T) {
	t.Parallel()
	s := objstore.NewMem()
	open := func(dir string, abandon bool) *DB {
		return openDir(t, dir, &Options{Objects: &objects.Config{Store: s, LocalLog: true, AbandonLog: abandon}})
	}
	first := t.TempDir()
	db := open(first, false)
	slot := makeSlot(t, db, "s")
	for i := range 4 {
		require.NoError(t, db.Set(fmt.Append(nil, i), nil, Sync))
		if i == 1 {
			require.NoError(t, db.Flush(t.Context()))
		}
	}
	changesOf(t, slot, 4, func(*Change) {})
	dir := t.TempDir()
	for _, abandon := range []bool{true, false} {
		next := open(dir, abandon)
		_, err := next.OpenSlot("s")
		require.ErrorIs(t, err, ErrSlotLost)
		for i := range 4 {
			require.NoError(t, next.Set(fmt.Append(nil, i), []byte("another"), Sync))
		}
		require.NoError(t, next.Close())
	}
	require.ErrorIs(t, slot.Ack(slot.Position()), objects.ErrFenced)
	require.Error(t, db.Close())

	next := open(dir, false) // the first directory has logs that were given up before this slot was made
	require.NoError(t, next.DropSlot("s"))
	require.NoError(t, makeSlot(t, next, "s").Close())
	require.NoError(t, next.Close())
	next = open(first, true)
	_, err := next.OpenSlot("s")
	require.NoError(t, err)
	require.NoError(t, next.Close())
}

// A writer that was taken over says so where its successor has deleted what its consumer needs.
func TestAConsumerOfAFencedWriterLearnsIt(t *testing.T) {
	t.Parallel()
	s := objstore.NewMem()
	db := openObjects(t, s, nil)
	slot := makeSlot(t, db, "s")
	require.NoError(t, errors.Join(db.Set([]byte("k"), nil, Sync), db.Flush(t.Context())))
	next := openObjects(t, s, nil)
	for o, err := range s.List(t.Context(), "sst/", "") {
		require.NoError(t, err)
		if strings.HasSuffix(o.Key, ".kept") {
			require.NoError(t, s.Delete(t.Context(), o.Key))
		}
	}
	for _, err := range slot.Changes(t.Context()) {
		require.ErrorIs(t, err, objects.ErrFenced)
	}
	missing, err := next.OpenSlot("s")
	require.NoError(t, err)
	for _, err := range missing.Changes(t.Context()) {
		require.ErrorIs(t, err, ErrCorruption, "nothing explains it")
		require.NotErrorIs(t, err, objects.ErrFenced)
	}
	require.NoError(t, next.Close())
}

// Damage to a copy of a log is an error after a second look, though what comes before it can be read.
func TestADamagedCopyOfALogInAnObjectStore(t *testing.T) {
	t.Parallel()
	s := objstore.NewMem()
	db := openObjects(t, s, nil)
	slot := makeSlot(t, db, "s")
	for i := range 3 {
		require.NoError(t, db.Set(fmt.Append(nil, i), make([]byte, 100), Sync))
	}
	require.NoError(t, db.Flush(t.Context()))
	for o, err := range s.List(t.Context(), "sst/", "") {
		require.NoError(t, err)
		if !strings.HasSuffix(o.Key, ".kept") {
			continue
		}
		data := make([]byte, o.Size)
		_, err := s.GetRange(t.Context(), o.Key, 0, data)
		require.NoError(t, err)
		data[len(data)*3/4]++
		require.NoError(t, s.Put(t.Context(), o.Key, bytes.NewReader(data), o.Size))
	}
	read := 0
	for _, err := range slot.Changes(t.Context()) {
		if err != nil {
			require.ErrorIs(t, err, ErrCorruption)
			break
		}
		read++
	}
	require.Equal(t, 2, read)
	require.NoError(t, db.Close())
}

// Logs that an Open finds are copied in an object store, also after a clean close: entries that stay would be read by
// each Open after it.
func TestLogsThatAnOpenFindsInAnObjectStoreAreCopied(t *testing.T) {
	t.Parallel()
	for _, local := range []bool{false, true} {
		s, dir := objstore.NewMem(), t.TempDir()
		open := func() *DB {
			return openDir(t, dir, &Options{Objects: &objects.Config{Store: s, LocalLog: local}})
		}
		db := open()
		makeSlot(t, db, "s")
		require.NoError(t, errors.Join(db.Set([]byte("k"), nil, Sync), db.Close()))
		db = open()
		part, ok, err := db.slots.After("s", 0)
		require.NoError(t, err)
		require.True(t, ok && part.Copy, "local log %t: %+v", local, part)
		require.NoError(t, db.Close())
	}
}

// A view can be closed while OpenSlot waits for an object store that does not answer.
func TestCloseWhileASlotIsOpened(t *testing.T) {
	t.Parallel()
	s := objstore.NewMem()
	db := openObjects(t, s, nil)
	require.NoError(t, makeSlot(t, db, "s").Close())
	faults, waits := objstoretest.NewFaults(s, 1), make(chan struct{})
	view, err := OpenReadOnly("", &Options{Objects: &objects.Config{Store: faults}})
	require.NoError(t, err)
	waiting := sync.OnceFunc(func() { close(waits) })
	faults.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
		if strings.HasPrefix(c.Key, "slot/") {
			waiting()
			f.Delay = time.Hour
		}
		return f
	})
	opened := make(chan error)
	go func() {
		_, err := view.OpenSlot("s")
		opened <- err
	}()
	<-waits
	require.NoError(t, view.Close())
	require.ErrorIs(t, <-opened, ErrClosed)
}

// A busy object store is that of a view. Its writer flushes after each poll of the view that found nothing new.
type busy struct {
	objstore.Store
	flush   func()
	polls   atomic.Int64
	nothing atomic.Bool // the last poll found nothing new
}

func (s *busy) GetRange(ctx context.Context, key string, off int64, p []byte) (int, error) {
	if s.nothing.Swap(false) && s.polls.Add(1) < 100 { // so that a test ends
		s.flush()
	}
	n, err := s.Store.GetRange(ctx, key, off, p)
	if errors.Is(err, objstore.ErrNotExist) {
		s.nothing.Store(true)
	}
	return n, err
}

// A consumer elsewhere gets its snapshot, however often the writer flushes.
func TestSnapshotsOfABusyStoreElsewhere(t *testing.T) {
	s := &busy{Store: objstore.NewMem()}
	db := openObjects(t, s.Store, nil) // its own requests are no polls
	require.NoError(t, makeSlot(t, db, "s").Close())
	s.flush = func() {
		require.NoError(t, errors.Join(db.Set([]byte("k"), nil, Sync), db.Flush(t.Context())))
	}
	view, err := OpenReadOnly("", &Options{Objects: &objects.Config{Store: s}, PollInterval: time.Millisecond})
	require.NoError(t, err)
	slot, err := view.OpenSlot("s")
	require.NoError(t, err)
	before := s.polls.Load()
	snap, err := view.SnapshotOf(t.Context(), slot)
	require.NoError(t, err)
	require.Less(t, s.polls.Load()-before, int64(10))
	require.NoError(t, errors.Join(snap.Close(), slot.Close(), view.Close(), db.Close()))
}
