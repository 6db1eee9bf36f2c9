package changelog

import (
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// newLog returns the log of a store in memory, whose edits are made at once.
func newLog(t *testing.T, fsys vfs.FS) *Log {
	t.Helper()
	require.NoError(t, fsys.MkdirAll("db"))
	l := &Log{FS: fsys, Dir: "db", Logger: slog.New(slog.DiscardHandler), MaxBytes: 1 << 20, Now: time.Now}
	l.Trim = func() error { l.edit(); return nil }
	return l
}

// edit makes an edit that proposes parts.
func (l *Log) edit(parts ...manifest.KeptPart) *manifest.Edit {
	e := &manifest.Edit{Slots: manifest.Kept{Parts: parts}}
	l.Change(e)
	l.Changed(e)
	return e
}

func (l *Log) begin(t *testing.T, name string, at base.SeqNum) {
	t.Helper()
	require.NoError(t, l.tryBegin(name, at))
	require.NoError(t, l.Trim())
	require.NoError(t, l.Save(name))
}

func (l *Log) tryBegin(name string, at base.SeqNum) error {
	lock, err := l.Lock(name)
	if err != nil {
		return err
	}
	if err = l.Begin(name, at, lock); err != nil {
		err = errors.Join(err, lock.Close())
	}
	return err
}

func part(log uint64, last base.SeqNum, bytes int64) manifest.KeptPart {
	return manifest.KeptPart{Log: log, Last: last, Bytes: bytes, Time: uint64(time.Now().Unix())}
}

func TestNothingIsKeptWithoutSlots(t *testing.T) {
	l := newLog(t, vfs.NewMem())
	require.Zero(t, l.edit(part(1, 10, 100)).Slots)
	require.False(t, l.Active())
	require.False(t, l.Keeps("db/000001.wal"))
}

func TestHistoryIsKeptUntilAllHaveAcknowledgedIt(t *testing.T) {
	l := newLog(t, vfs.NewMem())
	removed := 0
	l.Unneeded = func([]manifest.KeptPart) { removed++ }
	l.begin(t, "a", 5)
	l.edit(part(1, 10, 100))
	l.begin(t, "b", 10)
	l.edit(part(2, 20, 100))
	require.True(t, l.Keeps("db/000001.wal"))
	p, ok, err := l.After("a", 5)
	require.NoError(t, err)
	require.True(t, ok)
	require.EqualValues(t, 1, p.Log)
	require.NoError(t, l.Ack("a", 9)) // one more is needed of log 1
	require.Zero(t, removed)
	require.NoError(t, l.Ack("a", 10))
	require.Equal(t, 1, removed)
	require.False(t, l.Keeps("db/000001.wal"))
	require.NoError(t, l.Ack("a", 20))
	require.True(t, l.Keeps("db/000002.wal"), "b needs it")
	p, ok, err = l.After("b", 10)
	require.NoError(t, err)
	require.True(t, ok)
	require.EqualValues(t, 2, p.Log)
	_, ok, err = l.After("a", 20)
	require.NoError(t, err)
	require.False(t, ok)
	l.Close("b")
	require.NoError(t, l.Drop("b"))
	require.False(t, l.Keeps("db/000002.wal"))
	states := l.States(25)
	require.Len(t, states, 1)
	require.Equal(t, State{Name: "a", Acked: 20, Behind: 5, Open: true}, states[0])
}

func TestASlotThatIsTooFarBehindIsLost(t *testing.T) {
	fsys := vfs.NewMem()
	l := newLog(t, fsys)
	l.MaxBytes = 250
	l.begin(t, "slow", 0)
	l.begin(t, "quick", 0)
	l.edit(part(1, 10, 100))
	l.edit(part(2, 20, 100))
	require.NoError(t, l.Ack("quick", 20))
	e := l.edit(part(3, 30, 100))
	require.EqualValues(t, 10, e.Slots.From, "with log 1 it would be more than 250 bytes")
	require.False(t, l.Keeps("db/000001.wal"))
	require.True(t, l.Keeps("db/000003.wal"))
	_, _, err := l.After("slow", 0)
	require.ErrorIs(t, err, ErrLost)
	require.ErrorIs(t, l.Ack("slow", 5), ErrLost)
	_, _, err = l.After("quick", 20)
	require.NoError(t, err)
	require.EqualValues(t, 20, l.edit().Slots.From, "the slot that is lost needs nothing")

	// It stays lost when the store is opened again, as the manifest and its file say.
	require.NoError(t, l.Release())
	again := newLog(t, fsys)
	require.NoError(t, again.Recover(l.kept, 30, ""))
	require.NotEmpty(t, again.States(30)[1].Lost)
	_, err = again.Open("slow")
	require.ErrorIs(t, err, ErrLost)
	acked, err := again.Open("quick")
	require.NoError(t, err)
	require.EqualValues(t, 20, acked)
	require.NoError(t, again.Drop("slow"))
	_, err = again.Open("slow")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestASlotIsLostByAge(t *testing.T) {
	l := newLog(t, vfs.NewMem())
	l.MaxAge = time.Hour
	l.begin(t, "slow", 0)
	l.edit(part(1, 10, 100))
	l.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	fresh := part(2, 20, 100)
	fresh.Time += 7200
	l.edit(fresh)
	require.False(t, l.Active())
	require.Empty(t, l.edit().Slots.Parts)
	require.False(t, l.Keeps("db/000002.wal"), "no slot needs it")
}

func TestSlotsOfAnotherHistoryAreLost(t *testing.T) {
	for name, at := range map[string]struct {
		change func(k *manifest.Kept)
		last   base.SeqNum
	}{
		"no history":      {func(k *manifest.Kept) { *k = manifest.Kept{} }, 50},
		"another history": {func(k *manifest.Kept) { k.History++ }, 50},
		"fewer writes":    {func(*manifest.Kept) {}, 4},
		"a later start":   {func(k *manifest.Kept) { k.From = 6 }, 50},
	} {
		fsys := vfs.NewMem()
		l := newLog(t, fsys)
		l.begin(t, "a", 5)
		require.NoError(t, l.Release())
		kept := l.kept
		at.change(&kept)
		for _, last := range []base.SeqNum{at.last, 60} { // it stays lost when the store has as many writes again
			require.NoError(t, l.Release())
			again := newLog(t, fsys)
			var log strings.Builder
			again.Logger = slog.New(slog.NewTextHandler(&log, nil))
			require.NoError(t, again.Recover(kept, last, ""))
			require.Equal(t, 1, strings.Count(log.String(), `level=ERROR msg="a slot is lost" slot=a reason=`), name)
			require.False(t, again.Active(), name)
			_, err := again.Open("a")
			require.ErrorIs(t, err, ErrLost, name)
			require.ErrorIs(t, again.tryBegin("a", 50), fs.ErrExist, name)
			e := &manifest.Edit{}
			again.Describe(e)
			require.Zero(t, *e, name)
		}
	}
}

func TestASlotHasOneConsumer(t *testing.T) {
	fsys := vfs.NewMem()
	l := newLog(t, fsys)
	l.begin(t, "a", 5)
	require.NoError(t, l.Release())
	again := newLog(t, fsys)
	require.NoError(t, again.Recover(l.kept, 5, ""))
	_, err := again.Open("a")
	require.NoError(t, err)
	_, err = again.Open("a")
	require.ErrorIs(t, err, vfs.ErrLocked)
	require.ErrorIs(t, again.Drop("a"), vfs.ErrLocked)
}

// A slot whose consumer has all that is kept is lost as well when what follows is not there, and stays so.
func TestSlotsAreLostWhereHistoryHasAHole(t *testing.T) {
	fsys := vfs.NewMem()
	l := newLog(t, fsys)
	l.begin(t, "a", 5)
	first := l.kept.History
	l.edit(part(1, 10, 100))
	require.NoError(t, l.Ack("a", 10))
	l.Lose("a hole")
	e := l.edit(part(2, 20, 100))
	require.NotContains(t, []uint64{0, first}, e.Slots.History)
	require.Empty(t, e.Slots.Parts)
	require.Zero(t, l.edit(part(3, 30, 100)).Slots)
	_, _, err := l.After("a", 10)
	require.ErrorIs(t, err, ErrLost)
	on := manifest.Kept{History: first, From: 10}
	on.Apply(&e.Slots)
	require.NoError(t, l.Release())
	again := newLog(t, fsys)
	require.NoError(t, again.Recover(on, 30, ""))
	_, err = again.Open("a")
	require.ErrorIs(t, err, ErrLost)
	l.begin(t, "b", 30)
	require.NotEqual(t, e.Slots.History, l.kept.History)
	l.edit(part(4, 40, 100))
	require.True(t, l.Keeps("db/000004.wal"))
}

func TestADamagedSlotIsLostAlone(t *testing.T) {
	fsys := vfs.NewMem()
	l := newLog(t, fsys)
	l.begin(t, "a", 5)
	l.begin(t, "b", 5)
	require.NoError(t, vfs.ReplaceFile(fsys, "db/SLOT-a", []byte("nonsense")))
	require.NoError(t, l.Release())
	again := newLog(t, fsys)
	require.NoError(t, again.Recover(l.kept, 5, ""))
	_, err := again.Open("a")
	require.ErrorIs(t, err, ErrLost)
	_, err = again.Open("b")
	require.NoError(t, err)
	require.NoError(t, again.Drop("a"))
	require.Len(t, again.States(5), 1)
}

func TestNamesOfSlots(t *testing.T) {
	l := newLog(t, vfs.NewMem())
	err := l.tryBegin("Index", 0)
	require.ErrorIs(t, err, base.ErrInvalidOptions)
	l.begin(t, "index", 0)
	require.ErrorIs(t, l.tryBegin("index", 0), fs.ErrExist)
	l.Forget("index")
	require.False(t, l.Active())
	require.ErrorIs(t, l.Save("index"), fs.ErrNotExist)
	require.ErrorIs(t, l.Drop("index"), fs.ErrNotExist)
	require.ErrorIs(t, l.Ack("index", 1), fs.ErrNotExist)
}

// A lock that cannot be examined is released: the next attempt takes it.
func TestALockThatCannotBeExaminedIsReleased(t *testing.T) {
	for failing := range 6 {
		fsys := &vfstest.FaultFS{FS: vfs.NewMem()}
		require.NoError(t, fsys.MkdirAll("db"))
		before := fsys.Calls
		fsys.Set(func(c vfstest.Call) (int, error) {
			if c.N == before+failing {
				return 0, syscall.EIO
			}
			return 0, nil
		})
		lock, err := lockSlot(fsys, "db", "s")
		if err == nil {
			require.NoError(t, lock.Close())
			continue
		}
		require.ErrorIs(t, err, syscall.EIO)
		lock, err = lockSlot(fsys, "db", "s")
		require.NoError(t, err, "after call %d failed", failing)
		require.NoError(t, lock.Close())
	}
}

// A slot whose file is gone, but perhaps not for good, has it again: what is published later has the slot.
func TestASlotThatCannotBeDroppedHasItsFile(t *testing.T) {
	fsys := &vfstest.FaultFS{FS: vfs.NewMem()}
	l := newLog(t, fsys)
	l.begin(t, "s", 5)
	l.Close("s")
	failed := false
	fsys.Set(func(c vfstest.Call) (int, error) {
		if c.Op == "syncdir" && !failed {
			failed = true
			return 0, syscall.EIO
		}
		return 0, nil
	})
	require.ErrorIs(t, l.Drop("s"), syscall.EIO)
	_, err := fsys.Stat("db/SLOT-s")
	require.NoError(t, err)
	_, err = l.Open("s")
	require.NoError(t, err)
	l.Close("s")
	require.NoError(t, l.Drop("s"))
}

// Where all slots are lost no file says so before the manifest does.
func TestAllSlotsAreLostWithoutAWrite(t *testing.T) {
	fsys := vfs.NewMem()
	l := newLog(t, fsys)
	l.begin(t, "s", 5)
	file, err := vfs.ReadSmallFile(fsys, "db/SLOT-s", maxRecordSize)
	require.NoError(t, err)
	again := newLog(t, fsys)
	require.NoError(t, again.Recover(l.kept, 4, "it is lost")) // the store has lost write 5 as well
	_, err = again.Open("s")
	require.ErrorIs(t, err, ErrLost)
	require.ErrorContains(t, err, "it is lost")
	now, err := vfs.ReadSmallFile(fsys, "db/SLOT-s", maxRecordSize)
	require.NoError(t, err)
	require.Equal(t, string(file), string(now))
}

// A slot that has all that the store has, or has begun where the history does, is not lost. One that is ahead is.
func TestASlotAtTheEndsOfTheHistory(t *testing.T) {
	t.Parallel()
	for last, lost := range map[base.SeqNum]bool{9: true, 10: false, 11: false} {
		fsys := vfs.NewMem()
		l := newLog(t, fsys)
		l.begin(t, "a", 10)
		require.EqualValues(t, 10, l.kept.From)
		require.NoError(t, l.Release())
		again := newLog(t, fsys)
		require.NoError(t, again.Recover(l.kept, last, ""))
		require.Equal(t, lost, again.States(last)[0].Lost != "", "last %d", last)
	}
}
