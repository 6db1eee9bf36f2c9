package objects

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/remote/locallog"
	"github.com/siftkv/siftkv/internal/replay"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// Machines have an object store in common, and each has a directory of one file system.
type machines struct {
	t       *testing.T
	objects objstore.Store
	disks   vfs.FS
	grace   time.Duration
}

func newMachines(t *testing.T) *machines { return &machines{t, objstore.NewMem(), vfs.NewMem(), -1} }

// options are those of a store with a log on the local disk.
func (m *machines) options() *kv.Options {
	return stores.With(
		harness.Harness{Backoff: storetest.Quick, FS: m.disks, TuneObjects: storetest.ManyEdits},
		&kv.Options{MemtableSize: 64 << 10, TargetFileSize: 64 << 10, BaseLevelSize: 64 << 10,
			Objects: &objects.Config{
				Store:       m.objects,
				LocalLog:    true,
				LogInterval: time.Hour,
				Patience:    time.Millisecond,
				Grace:       m.grace,
			}},
	)
}

// remote are those of a store without one, on the same machines.
func (m *machines) remote() *kv.Options {
	o := m.options()
	configOf(o).LocalLog = false
	return o
}

func (m *machines) abandoning() *kv.Options {
	o := m.options()
	configOf(o).AbandonLog = true
	return o
}

func (m *machines) open(machine string, o *kv.Options) *kv.DB {
	m.t.Helper()
	db, err := kv.Open(machine, o)
	require.NoError(m.t, err)
	m.t.Cleanup(func() { _ = db.Close() })
	return db
}

func (m *machines) refused(machine string, o *kv.Options, is error) error {
	m.t.Helper()
	_, err := kv.Open(machine, o)
	require.ErrorIs(m.t, err, is)
	return err
}

// files returns what a machine has, but for locks.
func (m *machines) files(machine string) []string {
	m.t.Helper()
	names, err := m.disks.List(machine)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	require.NoError(m.t, err)
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "LOCK") })
}

// logs returns the names of the logs on a machine.
func (m *machines) logs(machine string) []string {
	return slices.DeleteFunc(m.files(machine), func(name string) bool {
		kind, _ := manifest.ParseFileName(name)
		return kind != manifest.FileWAL
	})
}

func putDurably(t *testing.T, db *kv.DB, key, value string) {
	t.Helper()
	require.NoError(t, db.Set([]byte(key), []byte(value), kv.Sync))
}

func TestAWriteToALocalLogSendsNoRequest(t *testing.T) {
	m := newMachines(t)
	counted := storetest.NewCountedStore()
	m.objects = counted
	m.grace = time.Hour // nothing is deleted meanwhile
	o := m.options()
	o.SeparateFrom = -1
	db := m.open("a", o)
	require.Empty(t, counted.Requests(func() {
		for i := range 100 {
			putDurably(t, db, strconv.Itoa(i), "value")
		}
	}))
	require.Equal(t, map[objstore.Kind]int64{objstore.Put: 1, objstore.PutIfAbsent: 1}, counted.Requests(func() {
		require.NoError(t, db.Flush(t.Context()))
	}))
	require.NoError(t, db.Close())
}

// What a crash leaves in the log is recovered on the same machine. No other machine opens the store, nor does the
// attempt hurt its writer.
func TestACrashedStoreOpensWhereItsLogIs(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	db := m.open("a", m.options())
	want := storetest.Model{}
	for i := range 5 {
		k := strconv.Itoa(i)
		putDurably(t, db, k, "value")
		want[k] = "value"
		if i%2 == 1 { // the newest list of files is an edit
			require.NoError(t, db.Flush(t.Context()))
			putDurably(t, db, k, "value")
		}
		for _, o := range []*kv.Options{m.options(), m.remote()} {
			err := m.refused("b", o, objects.ErrLogElsewhere)
			require.ErrorContains(t, err, locallog.PlaceOf("a"))
			require.ErrorContains(t, err, "AbandonLog")
		}
		_, err := kv.Open("", &kv.Options{Objects: &objects.Config{Store: m.objects}})
		require.ErrorIs(t, err, objects.ErrLogElsewhere)
		require.NoError(t, db.Flush(t.Context()), "the writer was left in peace")
		putDurably(t, db, k+"+", "more")
		want[k+"+"] = "more"
		require.NoError(t, db.Set([]byte("count"), fmt.Append(nil, i), kv.NoSync))
		want["count"] = k
		stores.Crash(t, db)
		db = m.open("a", m.options())
		storetest.RequireContents(t, want, db)
	}
	require.NoError(t, db.Close())
	require.Empty(t, m.files("b"))
}

func TestAClosedStoreOpensAnywhere(t *testing.T) {
	m := newMachines(t)
	want := storetest.Model{}
	for i := range 12 {
		machine := string(rune('a' + i%3))
		o := m.options()
		o.RecoveryMode = kv.RecoveryMode(i % int(replay.NumModes))
		db := m.open(machine, o)
		storetest.RequireContents(t, want, db)
		if i%4 != 3 { // a store whose log is empty is closed too
			k := strconv.Itoa(i)
			require.NoError(t, db.Set([]byte(k), []byte(machine), kv.Async))
			want[k] = machine
		}
		require.NoError(t, db.Close())
		require.Empty(t, m.files(machine))
	}
}

// A writer that abandons the log has what was flushed. The writer before finds out at its next flush, and its logs can
// never come back.
func TestAbandonLog(t *testing.T) {
	m := newMachines(t)
	old := m.open("a", m.options())
	putDurably(t, old, "flushed", "1")
	require.NoError(t, old.Flush(t.Context()))
	putDurably(t, old, "logged", "2")

	o := m.abandoning()
	var dropped []kv.DroppedInfo
	o.Events.RecoveryDropped = func(d kv.DroppedInfo) { dropped = append(dropped, d) }
	db := m.open("b", o)
	require.Len(t, dropped, 1)
	require.Equal(t, locallog.PlaceOf("a"), dropped[0].File)
	require.Contains(t, dropped[0].Reason, "AbandonLog")
	want := storetest.Model{"flushed": "1"}
	storetest.RequireContents(t, want, db)
	putDurably(t, db, "b", "3")
	want["b"] = "3"

	putDurably(t, old, "lost", "4") // its own disk has it
	require.ErrorIs(t, old.Flush(t.Context()), objects.ErrFenced)
	require.ErrorIs(t, old.Set([]byte("late"), nil, kv.Sync), objects.ErrFenced)
	require.ErrorIs(t, old.Close(), objects.ErrFenced)
	m.refused("a", m.options(), objects.ErrLogElsewhere) // where b has it
	m.refused("a", m.options(), objects.ErrLogAbandoned)
	m.refused("a", m.remote(), objects.ErrLogAbandoned)
	require.NotEmpty(t, m.logs("a"))
	require.NoError(t, db.Close())

	err := m.refused("a", m.options(), objects.ErrLogAbandoned)
	require.NotErrorIs(t, err, objects.ErrLogElsewhere)
	require.ErrorContains(t, err, m.logs("a")[0])
	kept := slices.DeleteFunc(m.logs("a"), func(name string) bool {
		size, err := m.disks.Stat(filepath.Join("a", name))
		require.NoError(t, err)
		return size <= wal.HeaderSize
	})
	dropped = nil
	db = m.open("a", o)
	storetest.RequireContents(t, want, db)
	require.Len(t, dropped, len(kept))
	for i, name := range kept {
		require.Equal(t, filepath.Join("a", name+".epoch-1"), dropped[i].File)
		require.Positive(t, dropped[i].Bytes)
		require.Contains(t, m.files("a"), name+".epoch-1")
	}
	require.NoError(t, db.Close())
	require.Len(t, m.files("a"), len(kept), "what was kept aside stays")
	db = m.open("a", m.options())
	storetest.RequireContents(t, want, db)
	require.NoError(t, db.Close())
}

// A log that was abandoned is so for good, even if nothing is written then.
func TestALogIsAbandonedForGood(t *testing.T) {
	m := newMachines(t)
	db := m.open("a", m.options())
	require.NoError(t, db.Flush(t.Context()))
	stores.Crash(t, db)
	o := m.remote()
	configOf(o).AbandonLog = true
	require.NoError(t, m.open("b", o).Close())
	require.NoError(t, m.open("c", m.options()).Close())
}

// AbandonLog gives nothing up that is there.
func TestALogThatIsHereIsNotAbandoned(t *testing.T) {
	m := newMachines(t)
	want := storetest.Model{}
	for i := range 4 {
		db := m.open("a", m.abandoning())
		storetest.RequireContents(t, want, db)
		putDurably(t, db, strconv.Itoa(i), "value")
		want[strconv.Itoa(i)] = "value"
		require.Zero(t, db.Metrics().RecoveryDrops)
		stores.Crash(t, db)
	}
}

// The log goes from the object store to disks and back, in crashes and in good order, and nothing is lost.
func TestTheLogMoves(t *testing.T) {
	t.Parallel()
	for seed := range uint64(scale.Count(5, 20)) {
		m := newMachines(t)
		rng := rand.New(rand.NewPCG(seed, 80))
		want, machine := storetest.Model{}, "a"
		for round := range 12 {
			o := m.options()
			configOf(o).LocalLog = rng.IntN(2) == 0
			db := m.open(machine, o)
			storetest.RequireContents(t, want, db)
			for i := range rng.IntN(40) {
				k := fmt.Sprintf("%d/%d", round, i)
				v := strings.Repeat(k, rng.IntN(1000))
				require.NoError(t, db.Set([]byte(k), []byte(v), kv.Async))
				want[k] = v
			}
			if rng.IntN(3) > 0 {
				putDurably(t, db, "synced", strconv.Itoa(round))
				want["synced"] = strconv.Itoa(round)
			} else {
				require.NoError(t, db.Flush(t.Context()))
			}
			if rng.IntN(3) == 0 {
				require.NoError(t, db.Close())
				require.Empty(t, m.files(machine))
				machine = string(rune('a' + rng.IntN(3)))
				continue
			}
			stores.Crash(t, db)
			if !configOf(o).LocalLog {
				machine = string(rune('a' + rng.IntN(3)))
			}
		}
	}
}

func TestALocalLogIsLocked(t *testing.T) {
	m := newMachines(t)
	db := m.open("a", m.options())
	putDurably(t, db, "k", "v")
	for _, o := range []*kv.Options{m.options(), m.remote(), m.abandoning()} {
		err := m.refused("a", o, kv.ErrLocked)
		require.ErrorContains(t, err, filepath.Join("a", "LOG-LOCK"))
	}
	require.NoError(t, db.Flush(t.Context()), "no other writer has taken over")
	putDurably(t, db, "k", "w")

	type opened struct {
		db  *kv.DB
		err error
	}
	waiting := make(chan opened)
	go func() {
		db, err := kv.OpenContext(context.Background(), "a", m.options())
		waiting <- opened{db, err}
	}()
	putDurably(t, db, "k", "x")
	require.NoError(t, db.Close())
	next := <-waiting
	require.NoError(t, next.err)
	storetest.RequireContents(t, storetest.Model{"k": "x"}, next.db)
	require.NoError(t, next.db.Close())
}

// Readers have what was flushed, wherever they are.
func TestReadersOfAStoreWithALocalLog(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	m.grace = time.Hour // views that are not refreshed yet stay whole
	before := m.open("a", m.remote())
	putDurably(t, before, "before", "0")
	stores.Crash(t, before) // what is in the object store's log stays readable
	db := m.open("a", m.options())
	want := storetest.Model{"before": "0"}
	var views []*kv.DB
	for _, dir := range []string{"", "a", "b"} {
		o := m.options()
		view, err := kv.OpenReadOnly(dir, o)
		require.NoError(t, err)
		storetest.RequireContents(t, want, view)
		views = append(views, view)
		o.ReadOnly = true
		still, err := kv.Open(dir, o)
		require.NoError(t, err)
		storetest.RequireContents(t, want, still)
		require.NoError(t, still.Close())
	}
	refresh := func() {
		for _, view := range views {
			require.NoError(t, view.Refresh(t.Context()))
			storetest.RequireContents(t, want, view)
		}
	}
	for round := range 6 {
		k := strconv.Itoa(round)
		putDurably(t, db, k, "value")
		if round == 4 { // the object store has the log, since the round before
			want[k] = "value"
		}
		refresh()
		require.NoError(t, db.Flush(t.Context()))
		want[k] = "value"
		refresh()
		switch round {
		case 1:
			stores.Crash(t, db)
			db = m.open("a", m.options())
		case 2:
			require.NoError(t, db.Close())
			db = m.open("b", m.options())
		case 3:
			stores.Crash(t, db)
			db = m.open("b", m.remote())
			putDurably(t, db, "remote", k)
			want["remote"] = k
		case 4:
			stores.Crash(t, db)
			db = m.open("b", m.options())
		}
		refresh()
	}
	woken := make(chan error)
	go func() { woken <- views[0].WaitForChange(t.Context()) }()
	putDurably(t, db, "last", "value")
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, <-woken)
	want["last"] = "value"
	refresh()
	for _, view := range views {
		require.NoError(t, view.Close())
	}
	require.NoError(t, db.Close())
}

// A store that cannot flush when it closes says so, and is whole on this machine.
func TestCloseWithoutTheObjectStore(t *testing.T) {
	m := newMachines(t)
	faults := objstoretest.NewFaults(m.objects, 1)
	o := m.options()
	configOf(o).Store = faults
	db := m.open("a", o)
	putDurably(t, db, "k", "v")
	faults.Inject(dead)
	require.ErrorIs(t, db.Close(), objstore.ErrClosed)
	m.refused("b", m.options(), objects.ErrLogElsewhere)
	db = m.open("a", m.options())
	storetest.RequireContents(t, storetest.Model{"k": "v"}, db)
	require.NoError(t, db.Close())
}

func TestALocalLogNeedsADirectory(t *testing.T) {
	o := &kv.Options{Objects: &objects.Config{Store: objstore.NewMem(), LocalLog: true}}
	_, err := kv.Open("", o)
	require.ErrorIs(t, err, kv.ErrInvalidOptions)
	require.ErrorContains(t, err, "LocalLog")
}
