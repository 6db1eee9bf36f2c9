package changelog

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/internal/wal"
)

// A writer makes the files of a store with a slot "a" at write 0.
type writer struct {
	t     *testing.T
	fsys  vfs.FS
	edits *manifest.Log
	log   *wal.Writer
	slots *Log
}

func newWriter(t *testing.T, fsys vfs.FS) *writer {
	t.Helper()
	w := &writer{t: t, fsys: fsys, slots: newLog(t, fsys)}
	w.slots.Last = func() base.SeqNum { return base.MaxSeqNum }
	w.slots.begin(t, "a", 0)
	require.NoError(t, w.slots.Release())
	edit := &manifest.Edit{LogNum: 2}
	w.slots.Describe(edit)
	w.manifest(1, edit)
	w.begin(2)
	return w
}

func (w *writer) manifest(num uint64, edit *manifest.Edit) {
	w.t.Helper()
	var err error
	w.edits, err = manifest.Create(w.fsys, "db", num, edit)
	require.NoError(w.t, err)
}

// begin begins a log. The one before has ended, or is broken.
func (w *writer) begin(num uint64) {
	f, err := w.fsys.Create(manifest.Path("db", manifest.FileWAL, num))
	require.NoError(w.t, err)
	w.log = wal.NewWriter(f, num)
}

// set makes a write that the operating system has.
func (w *writer) set(seq base.SeqNum) {
	var b batchrepr.Writer
	b.Add(base.KindSet, []byte("k"), make([]byte, 100))
	require.NoError(w.t, w.log.Append(b.Seal(seq)))
	require.NoError(w.t, w.log.Flush())
}

func (w *writer) mark() { require.NoError(w.t, errors.Join(w.log.SyncFile(), w.log.Mark())) }

func (w *writer) edit(e *manifest.Edit) {
	w.slots.Change(e)
	require.NoError(w.t, w.edits.Append(e))
	w.slots.Changed(e)
}

// consumer opens the slot in what stands for another process.
func (w *writer) consumer() *Consumer {
	w.t.Helper()
	c := &Consumer{FS: w.fsys, Dir: "db", Poll: time.Millisecond,
		Interrupted: func(ctx context.Context) error { return ctx.Err() }}
	_, err := c.Open(w.t.Context(), "a")
	require.NoError(w.t, err)
	return c
}

func (w *writer) requireRange(c *Consumer, last, durable base.SeqNum) {
	w.t.Helper()
	l, d, err := c.Range(w.t.Context())
	require.NoError(w.t, err)
	require.Equal(w.t, []base.SeqNum{last, durable}, []base.SeqNum{l, d})
}

// What marks prove is durable, and nothing else: not what is visible, nor what an edit says that may not be synced.
func TestAConsumerElsewhereKnowsWhatIsDurable(t *testing.T) {
	t.Parallel()
	w := newWriter(t, vfs.NewMem())
	c := w.consumer()
	w.requireRange(c, 0, 0)
	w.set(1)
	w.set(2)
	w.requireRange(c, 2, 0)
	require.NoError(t, w.log.SyncFile())
	w.requireRange(c, 2, 0)
	w.mark()
	w.requireRange(c, 2, 2)
	w.mark() // it says no more
	require.NoError(t, w.log.SyncFile())
	w.requireRange(c, 2, 2)
	w.set(3)
	w.set(4)
	w.requireRange(c, 4, 2)

	require.NoError(t, w.log.End())
	w.begin(4)
	w.set(5)
	w.requireRange(c, 5, 2)
	p, err := c.Locate(2)
	require.NoError(t, err)
	require.Equal(t, manifest.KeptPart{Log: 2, Last: 4}, p)
	p, err = c.Locate(4)
	require.NoError(t, err)
	require.Equal(t, manifest.KeptPart{Log: 4, Last: base.MaxSeqNum}, p)
	w.edit(&manifest.Edit{LogNum: 4, LastSeq: 4, Slots: manifest.Kept{Parts: []manifest.KeptPart{part(2, 4, 10)}}})
	w.requireRange(c, 5, 2) // the edit may be lost
	p, err = c.Locate(3)
	require.NoError(t, err)
	require.Equal(t, part(2, 4, 10).Last, p.Last)
	require.NoError(t, w.edits.Mark())
	w.requireRange(c, 5, 4)
	w.mark()
	w.requireRange(c, 5, 5)

	// A mark proves the logs before its own.
	require.NoError(t, w.log.End())
	w.begin(5)
	w.set(6)
	require.NoError(t, w.log.End())
	w.begin(6)
	w.mark() // a log without records gets none
	w.requireRange(c, 6, 5)
	w.set(7)
	w.requireRange(c, 7, 5)
	w.mark()
	w.requireRange(c, 7, 7)

	// So does the end of a manifest that another replaces, or whose store is closed.
	w.set(8)
	require.NoError(t, w.edits.Append(&manifest.Edit{Closed: 8}))
	w.requireRange(c, 8, 7)
	require.NoError(t, w.edits.Close())
	w.requireRange(c, 8, 8)
	next := &manifest.Edit{LogNum: 7, LastSeq: 8}
	w.slots.Describe(next)
	w.manifest(7, next)
	w.requireRange(c, 8, 8)
	w.begin(7)
	w.set(9)
	w.edit(&manifest.Edit{LogNum: 9, LastSeq: 9})
	w.requireRange(c, 9, 8)
	w.edit(&manifest.Edit{})
	w.edit(&manifest.Edit{NextFile: 10})
	w.requireRange(c, 9, 9)
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	_, _, err = c.Range(t.Context())
	require.ErrorIs(t, err, base.ErrClosed)
}

// A consumer that reads many writes at once, of which none is known to be durable, forgets where some end.
func TestWhatIsUnprovenIsBounded(t *testing.T) {
	t.Parallel()
	w := newWriter(t, vfs.NewMem())
	c := w.consumer()
	const n = 3 * maxUnproven
	for seq := range base.SeqNum(n) {
		w.set(seq + 1)
		if seq == n/2 {
			require.NoError(t, w.log.SyncFile()) // a mark comes with the next
		}
	}
	w.requireRange(c, n, maxUnproven-1)
	require.LessOrEqual(t, len(c.live[0].records), maxUnproven)
	w.mark()
	w.requireRange(c, n, n)
}

func TestAcknowledgementsElsewhere(t *testing.T) {
	t.Parallel()
	disk := &vfstest.FaultFS{FS: vfs.NewMem()}
	w := newWriter(t, disk)
	c := w.consumer()
	for seq := range base.SeqNum(4) {
		w.set(seq + 1)
	}
	w.mark()
	w.requireRange(c, 4, 4)
	require.NoError(t, w.log.End())
	w.begin(3)
	w.edit(&manifest.Edit{LogNum: 3, LastSeq: 4, Slots: manifest.Kept{Parts: []manifest.KeptPart{part(2, 4, 10)}}})
	require.NoError(t, c.Ack(3))
	require.NoError(t, c.Ack(0))
	require.NoError(t, c.Ack(2))
	acked := func() base.SeqNum {
		t.Helper()
		again := newLog(t, disk)
		require.NoError(t, again.Recover(w.slots.kept, 4, ""))
		states := again.States(4)
		require.True(t, states[0].Open)
		require.Empty(t, states[0].Lost)
		return base.SeqNum(states[0].Acked)
	}
	require.EqualValues(t, 3, acked())
	require.EqualValues(t, 3, w.slots.States(4)[0].Acked)
	require.True(t, w.slots.Keeps("db/000002.wal"))

	// An acknowledgement that could not be written may be there, and another does not take it back.
	for _, op := range []string{"create", "rename", "syncdir"} {
		disk.Set(func(call vfstest.Call) (int, error) {
			if call.Op == op {
				return 0, errors.New("the disk fails")
			}
			return 0, nil
		})
		require.Error(t, c.Ack(4), op)
	}
	swept := false // by a writer that opens the store
	disk.Set(func(call vfstest.Call) (int, error) {
		if call.Op == "rename" && !swept {
			swept = true
			return 0, errors.Join(disk.FS.Remove("db/SLOT-a.tmp"), fs.ErrNotExist)
		}
		return 0, nil
	})
	require.NoError(t, c.Ack(4))
	require.True(t, swept)
	disk.Set(nil)
	require.EqualValues(t, 4, acked())
	w.slots.Learn()
	w.edit(&manifest.Edit{})
	require.False(t, w.slots.Keeps("db/000002.wal"), "no slot needs it")

	_, err := w.slots.Open("a")
	require.ErrorIs(t, err, vfs.ErrLocked)
	require.ErrorIs(t, w.slots.Drop("a"), vfs.ErrLocked)
	require.NoError(t, c.Close())
	require.ErrorIs(t, c.Ack(5), base.ErrClosed)
	at, err := w.slots.Open("a")
	require.NoError(t, err)
	require.EqualValues(t, 4, at)
	w.slots.Close("a")
	require.NoError(t, w.slots.Drop("a"))
	names, err := disk.List("db")
	require.NoError(t, err)
	require.NotContains(t, names, "CONSUMER-a")
	require.NotContains(t, names, "SLOT-a")
	_, err = c.Open(t.Context(), "a")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = c.Open(t.Context(), "../a")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// What the writer gives up, and another history, are errors that say so, for good.
func TestASlotElsewhereIsLost(t *testing.T) {
	t.Parallel()
	kept := func(p ...manifest.KeptPart) manifest.Kept { return manifest.Kept{Parts: p} }
	for name, lose := range map[string]func(w *writer, c *Consumer){
		whyOverrun: func(w *writer, _ *Consumer) {
			w.slots.MaxBytes = 10
			w.edit(&manifest.Edit{LogNum: 3, LastSeq: 4, Slots: kept(part(2, 4, 10))})
			w.edit(&manifest.Edit{LogNum: 4, LastSeq: 5, Slots: kept(part(3, 5, 10))})
		},
		whyDiverged: func(w *writer, _ *Consumer) { // it was repaired
			w.manifest(3, &manifest.Edit{LogNum: 2})
		},
		whyDiverged + " (the end is gone)": func(w *writer, c *Consumer) {
			w.requireRange(c, 4, 4)
			edit := &manifest.Edit{LogNum: 3, LastSeq: 3}
			w.slots.Describe(edit)
			w.manifest(3, edit)
		},
	} {
		w := newWriter(t, vfs.NewMem())
		c := w.consumer()
		for seq := range base.SeqNum(4) {
			w.set(seq + 1)
		}
		w.mark()
		lose(w, c)
		for range 2 {
			_, err := c.Await(t.Context(), 0)
			require.ErrorIs(t, err, ErrLost, name)
			require.ErrorContains(t, err, name[:20])
			_, err = c.Locate(0)
			require.ErrorIs(t, err, ErrLost, name)
			require.ErrorIs(t, c.Ack(1), ErrLost, name)
		}
		require.NoError(t, c.Close())
		_, err := c.Open(t.Context(), "a")
		require.Error(t, err)
		if name == whyDiverged+" (the end is gone)" {
			w.slots.Learn()
			_, err = w.slots.Open("a")
		}
		require.ErrorIs(t, err, ErrLost, name)
	}
}

// An acknowledgement that comes while the writer gives up what it had is in time.
func TestAnAcknowledgementInTimeCounts(t *testing.T) {
	t.Parallel()
	w := newWriter(t, vfs.NewMem())
	w.slots.begin(t, "b", 0)
	w.slots.MaxBytes = 10
	c := w.consumer()
	w.set(1)
	w.mark()
	w.edit(&manifest.Edit{LogNum: 2, LastSeq: 1, Slots: manifest.Kept{Parts: []manifest.KeptPart{part(1, 1, 10)}}})
	require.NoError(t, w.slots.Ack("b", 1))
	require.NoError(t, c.Ack(1)) // the writer has not learned of it
	w.edit(&manifest.Edit{LogNum: 2, LastSeq: 2, Slots: manifest.Kept{Parts: []manifest.KeptPart{part(3, 2, 10)}}})
	require.NotEmpty(t, w.slots.States(2)[0].Name)
	_, _, err := c.Range(t.Context())
	require.NoError(t, err)
	require.Empty(t, w.slots.States(2)[0].Lost)
	require.True(t, w.slots.Active())
}

// A consumer that has what the store has lost keeps the slot's file. So the history ends, and with it all slots.
func TestAStoreThatHasLostWhatAConsumerHas(t *testing.T) {
	t.Parallel()
	w := newWriter(t, vfs.NewMem())
	c := w.consumer()
	w.set(1)
	w.set(2)
	w.mark()
	require.NoError(t, c.Ack(2))
	again := newLog(t, w.fsys)
	require.NoError(t, again.Recover(w.slots.kept, 1, ""))
	require.False(t, again.Active())
	require.NotEmpty(t, again.States(1)[0].Lost)
	require.NoError(t, c.Close())
	r, err := readRecord(w.fsys, "db/SLOT-a")
	require.NoError(t, err)
	require.NotZero(t, r.History)
	again = newLog(t, w.fsys)
	require.NoError(t, again.Recover(w.slots.kept, 1, ""))
	r, err = readRecord(w.fsys, "db/SLOT-a")
	require.NoError(t, err)
	require.Zero(t, r.History, "no consumer has it: its file says that it is lost")
}

func TestHostileFilesOfConsumers(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "nonsense", "999999999999999999999999\n", "1\n", string(make([]byte, 10_000))} {
		w := newWriter(t, vfs.NewMem())
		require.NoError(t, vfs.ReplaceFile(w.fsys, "db/CONSUMER-a", []byte(text)))
		require.NoError(t, vfs.ReplaceFile(w.fsys, "db/CONSUMER-none", []byte(text)))
		c := w.consumer()
		require.NoError(t, c.Close())
		require.NoError(t, vfs.ReplaceFile(w.fsys, "db/SLOT-a", []byte(text)))
		_, err := c.Open(t.Context(), "a")
		require.ErrorIs(t, err, ErrLost)
		again := newLog(t, w.fsys)
		require.NoError(t, again.Recover(w.slots.kept, 1, ""))
		names, err := w.fsys.List("db")
		require.NoError(t, err)
		require.NotContains(t, names, "CONSUMER-none", "it is of no slot")
	}
}

// A Marker marks as long as a consumer is elsewhere, and looks for one now and then.
func TestAMarkerMarksForConsumersElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWriter(t, vfs.NewMem())
		calls := make(chan struct{})
		m := Marker{Log: w.slots, Wait: func(ctx context.Context) { <-ctx.Done() },
			Mark: func(ctx context.Context) (time.Duration, bool, error) {
				select {
				case calls <- struct{}{}:
				case <-ctx.Done():
				}
				return 0, true, errors.New("the disk fails")
			}}
		c := w.consumer()
		m.Start(0)
		for range 3 {
			<-calls
		}
		require.NoError(t, c.Close())
		for idle := false; !idle; {
			select {
			case <-calls:
			case <-time.After(2 * LookEvery):
				idle = true
			}
		}
		c = w.consumer()
		<-calls
		w.slots.Lose("a test")
		for ended := false; !ended; { // with the last slot
			select {
			case <-calls:
			case <-time.After(2 * LookEvery):
				ended = true
			}
		}
		require.NoError(t, c.Close())
		w.slots.begin(t, "again", 1)
		require.NoError(t, w.slots.Save("again"))
		w.slots.Close("again")
		lock, err := lockSlot(w.fsys, "db", "again")
		require.NoError(t, err)
		m.Start(0)
		<-calls
		m.Stop()
		m.Stop()
		m.Start(0)
		require.Nil(t, m.cancel)
		require.NoError(t, lock.Close())
		never := Marker{Log: &Log{}}
		never.Stop()
		never.Start(0)
		require.Nil(t, never.cancel)
	})
}

// What a consumer has of a view may not be durable. It is acknowledged when it is, and refused if it has failed.
func TestAnAcknowledgementWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	w := newWriter(t, vfs.NewMem())
	c := w.consumer()
	w.set(1)
	w.set(2)
	acked := make(chan error)
	go func() { acked <- c.Ack(2) }()
	for seen := base.SeqNum(0); seen < 2; { // it has seen the writes
		c.mu.Lock()
		seen = c.last()
		c.mu.Unlock()
	}
	w.mark()
	require.NoError(t, <-acked)
	w.set(3)
	w.set(4)
	w.requireRange(c, 4, 2)
	w.begin(3)
	w.edit(&manifest.Edit{LogNum: 3, LastSeq: 3, Slots: manifest.Kept{Parts: []manifest.KeptPart{part(2, 3, 10)}}})
	w.set(5)
	w.mark()
	require.NoError(t, w.edits.Mark())
	w.requireRange(c, 5, 5)
	w.set(6)
	w.requireRange(c, 6, 5)
	w.begin(4)
	w.edit(&manifest.Edit{LogNum: 4, LastSeq: 5, Slots: manifest.Kept{Parts: []manifest.KeptPart{part(3, 5, 10)}}})
	w.set(7)
	w.mark()
	require.NoError(t, w.edits.Mark())
	w.requireRange(c, 7, 7)
	require.NoError(t, c.Ack(3))
	require.ErrorIs(t, c.Ack(4), ErrLost, "whatever has failed since")
	require.NoError(t, c.Close())
}
