package objects

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

const homeFile = "LOG-HOME"

// change replaces what a file of a machine has; nil removes it.
func (m *machines) change(name string, to func([]byte) []byte) {
	m.t.Helper()
	b := to(storetest.ReadAll(m.t, m.disks, name))
	if b == nil {
		require.NoError(m.t, m.disks.Remove(name))
		return
	}
	w, err := m.disks.Create(name)
	require.NoError(m.t, err)
	_, err = w.Write(b)
	require.NoError(m.t, errors.Join(err, w.Close()))
}

func gone([]byte) []byte { return nil }

// inLog is the key of a write to a log.
func inLog(log, n int) string { return fmt.Sprintf("%d/%02d", log, n) }

// crashedInLogs returns machines of which "a" has the log of a store: three logs, of ten synced writes each. The list
// of files names them all: a compaction that ended last made it.
func crashedInLogs(t *testing.T) (m *machines, logs []string) {
	m = newMachines(t)
	bucket := m.objects
	faults := objstoretest.NewFaults(bucket, 1)
	m.objects = faults
	o := m.options()
	o.MaxMemtables, o.L0CompactionThreshold, harness.Of(o).Backoff = 8, 2, storetest.Never
	db := m.open("a", o)
	var uploads atomic.Int64 // of tables
	compact, flush := make(chan struct{}), make(chan struct{})
	faults.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
		if c.Kind == objstore.Put && strings.HasSuffix(c.Key, ".sst") {
			switch uploads.Add(1) {
			case 3: // after two flushes
				<-compact
			case 4: // no flush takes the logs away
				<-flush
				f = dead(c)
			}
		}
		return f
	})
	for range 2 {
		putDurably(t, db, "flushed", "1")
		require.NoError(t, db.Flush(t.Context()))
	}
	storetest.Until(func() bool { return uploads.Load() == 3 })
	storetest.Until(func() bool { return len(m.logs("a")) == 1 }) // the logs of what was flushed are deleted
	var flushes sync.WaitGroup
	for log := range 3 {
		if log > 0 {
			flushes.Go(func() { require.Error(t, db.Flush(t.Context())) })
			storetest.Until(func() bool { return len(m.logs("a")) == log+1 })
		}
		for n := range 10 {
			putDurably(t, db, inLog(log, n), "value")
		}
	}
	storetest.Until(func() bool { return uploads.Load() == 4 })
	close(compact)
	storetest.Until(func() bool { return db.Metrics().Levels[0].Runs == 0 })
	close(flush)
	flushes.Wait()
	require.NoError(t, harness.Abandon(db))
	m.objects = bucket
	logs = m.logs("a")
	require.Len(t, logs, 3)
	for log, name := range logs {
		require.Contains(t, string(m.read(filepath.Join("a", name))), inLog(log, 0), name)
	}
	return m, logs
}

// What the store's log has lost on the disk is an error, as in a store that is on the disk as a whole.
func TestDamageToALocalLogIsAnError(t *testing.T) {
	half := func(b []byte) []byte { return b[:len(b)/2] }
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	empty := func([]byte) []byte { return []byte{} }
	for name, c := range map[string]struct {
		log  int
		hurt func([]byte) []byte
	}{
		"the first is missing":     {0, gone},
		"the first is cut off":     {0, half},
		"the first is empty":       {0, empty},
		"the first is damaged":     {0, flip},
		"the second is missing":    {1, gone},
		"the third is missing":     {2, gone},
		"the second is cut off":    {1, half},
		"the second is damaged":    {1, flip},
		"the third is damaged":     {2, flip},
		"the third is not a log's": {2, func(b []byte) []byte { b[3] ^= 1; return b }},
	} {
		t.Run(name, func(t *testing.T) {
			m, logs := crashedInLogs(t)
			m.change(filepath.Join("a", logs[c.log]), c.hurt)
			for range 2 {
				err := m.refused("a", m.options(), kv.ErrCorruption)
				require.ErrorContains(t, err, logs[c.log])
			}
			o := m.abandoning() // the log is here
			m.refused("a", o, kv.ErrCorruption)
			o.RecoveryMode = kv.SkipCorrupt
			db := m.open("a", o)
			for _, k := range []string{"flushed", inLog((c.log+1)%3, 0)} {
				ok, err := db.Has([]byte(k))
				require.NoError(t, err)
				require.True(t, ok, k)
			}
			require.NoError(t, db.Close())
			require.NoError(t, m.open("b", m.options()).Close())
		})
	}
}

// A directory that does not say that it has the store's log has it not.
func TestDamageToAHomeFile(t *testing.T) {
	other := newMachines(t)
	putDurably(t, other.open("a", other.options()), "k", "v")
	foreign := other.read(filepath.Join("a", homeFile))
	damaged := []error{objects.ErrLogElsewhere, kv.ErrCorruption}
	for name, c := range map[string]struct {
		hurt func([]byte) []byte
		is   []error
	}{
		"it is missing":         {gone, []error{objects.ErrLogElsewhere, objects.ErrLogAbandoned}},
		"it is empty":           {func([]byte) []byte { return []byte{} }, damaged},
		"it is damaged":         {func(b []byte) []byte { b[30] ^= 1; return b }, damaged},
		"it has more":           {func(b []byte) []byte { return append(b, ' ') }, damaged},
		"it is another store's": {func([]byte) []byte { return foreign }, []error{kv.ErrForeignDirectory}},
		"it is of a later format": {func([]byte) []byte { return base.SealLine("siftkv-log format=2 x") },
			[]error{kv.ErrNewerFormat}},
	} {
		t.Run(name, func(t *testing.T) {
			m, logs := crashedInLogs(t)
			m.change(filepath.Join("a", homeFile), c.hurt)
			for _, is := range c.is {
				m.refused("a", m.options(), is)
			}
			require.Equal(t, logs, m.logs("a"))
			if len(c.is) == 1 { // AbandonLog does not help
				m.refused("a", m.abandoning(), c.is[0])
				return
			}
			db := m.open("a", m.abandoning())
			storetest.RequireContents(t, storetest.Model{"flushed": "1"}, db)
			require.NoError(t, db.Close())
			require.Len(t, m.files("a"), len(logs), "the logs are kept aside")
		})
	}
}

func (m *machines) read(name string) []byte {
	m.t.Helper()
	return storetest.ReadAll(m.t, m.disks, name)
}

// A directory that is put back as it was is not the log of the store any more: it lacks writes.
func TestAnOlderCopyOfALocalLogIsRefused(t *testing.T) {
	m := newMachines(t)
	db := m.open("a", m.options())
	putDurably(t, db, "1", "")
	stores.Crash(t, db)
	copied := map[string][]byte{}
	for _, name := range m.files("a") {
		copied[name] = m.read(filepath.Join("a", name))
	}
	db = m.open("a", m.options())
	putDurably(t, db, "2", "")
	stores.Crash(t, db)
	for _, name := range m.files("a") {
		require.NoError(t, m.disks.Remove(filepath.Join("a", name)))
	}
	for name, b := range copied {
		w, err := m.disks.Create(filepath.Join("a", name))
		require.NoError(t, err)
		_, err = w.Write(b)
		require.NoError(t, errors.Join(err, w.Close()))
	}
	err := m.refused("a", m.options(), objects.ErrLogElsewhere)
	require.ErrorContains(t, err, "older copy")
	db = m.open("a", m.abandoning())
	storetest.RequireContents(t, storetest.Model{"1": ""}, db) // which the second opening had flushed
	require.NoError(t, db.Close())
}

// A store and the log of another do not share a directory.
func TestALocalLogInTheDirectoryOfAStore(t *testing.T) {
	m := newMachines(t)
	plain := stores.OpenDir(t, "a", stores.With(harness.Harness{FS: m.disks}, &kv.Options{}))
	require.NoError(t, plain.Close())
	before := m.files("a")
	m.refused("a", m.options(), kv.ErrForeignDirectory)
	require.Equal(t, before, m.files("a"))

	db := m.open("b", m.options())
	putDurably(t, db, "k", "v")
	_, err := kv.Open("b", stores.With(harness.Harness{FS: m.disks}, &kv.Options{}))
	require.Error(t, err)
	require.NoError(t, db.Close())
}

// The local disk is full, or fails at a call: the store is one that failed, and resumes.
func TestALocalLogOnADiskThatFails(t *testing.T) {
	for _, op := range []string{"create", "write", "sync", "syncdir", "full"} {
		t.Run(op, func(t *testing.T) {
			m := newMachines(t)
			disk := &vfstest.FaultFS{FS: m.disks}
			m.disks = disk
			want := storetest.Model{}
			db := m.open("a", m.options())
			putDurably(t, db, "before", "1")
			want["before"] = "1"
			disk.Set(func(c vfstest.Call) (int, error) {
				if c.Op == op || op == "full" && c.Changes {
					return c.Bytes / 2, syscall.ENOSPC
				}
				return 0, nil
			})
			var err error
			for i := 0; err == nil; i++ { // until a log is full, if need be
				require.Less(t, i, 1000, "writes go on")
				k := strconv.Itoa(i)
				if err = db.Set([]byte(k), make([]byte, 5000), kv.Sync); err == nil {
					want[k] = string(make([]byte, 5000))
				}
			}
			stores.RequireFull(t, err, "a")
			storetest.RequireContents(t, want, db)
			if op != "full" {
				require.NoError(t, view(t, m), "the object store works")
			}
			disk.Set(nil)
			stores.UntilResumed(db)
			putDurably(t, db, "after", "2")
			want["after"] = "2"
			stores.Crash(t, db)
			db = m.open("a", m.options())
			storetest.RequireContents(t, want, db)
			require.NoError(t, db.Close())
			db = m.open("b", m.options())
			storetest.RequireContents(t, want, db)
			require.NoError(t, db.Close())
		})
	}
}

// view opens a view of the store, and closes it.
func view(t *testing.T, m *machines) error {
	t.Helper()
	db, err := kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10, Objects: &objects.Config{Store: m.objects}})
	if err != nil {
		return err
	}
	return db.Close()
}

// A directory that is removed under a store, and made again, gets no log that no opening would find.
func TestALocalLogWhoseDirectoryIsReplaced(t *testing.T) {
	m := newMachines(t)
	db := m.open("a", m.options())
	putDurably(t, db, "k", "v")
	m.change(filepath.Join("a", homeFile), gone)
	require.Error(t, db.Flush(t.Context()))
	require.ErrorIs(t, db.Set([]byte("k"), nil, kv.Sync), kv.ErrReadOnly)
	require.Error(t, db.Close())
	m.refused("a", m.options(), objects.ErrLogElsewhere)
}

// A process that dies at any of its requests leaves a log and lists of files that fit each other.
func TestDeathAtEachRequestWithALocalLog(t *testing.T) {
	t.Parallel()
	for nth := int64(1); ; nth += int64(scale.Stride(1, 1)) {
		dead := false
		for mode := range 4 { // of the life that dies, and of the next
			if !t.Run(fmt.Sprintf("%d/%d", nth, mode), func(t *testing.T) { dead = deathWithALocalLog(t, nth, mode) }) {
				return
			}
		}
		if !dead {
			require.Greater(t, nth, int64(10))
			return
		}
	}
}

func deathWithALocalLog(t *testing.T, nth int64, mode int) bool {
	m := newMachines(t)
	want := storetest.Model{}
	db := m.open("a", m.options())
	putDurably(t, db, "first", "1")
	want["first"] = "1"
	stores.Crash(t, db)

	faults := deadFrom(m.objects, nth, objstoretest.NotPerformed)
	o := m.options()
	configOf(o).Store, configOf(o).LocalLog = faults, mode%2 == 0
	unknown := "" // a write that failed may be there
	db, err := kv.Open("a", o)
	if err == nil {
		for i := range 8 {
			k := strconv.Itoa(i)
			if err = db.Set([]byte(k), []byte(k), kv.Sync); err != nil {
				unknown = k
				break
			}
			want[k] = k
			if i == 3 && db.Flush(t.Context()) != nil {
				break
			}
		}
		_ = db.Close()
	}
	o = m.options()
	configOf(o).LocalLog = mode/2 == 0
	db = m.open("a", o)
	if ok, err := db.Has([]byte(unknown)); err == nil && ok {
		want[unknown] = unknown
	}
	storetest.RequireContents(t, want, db)
	putDurably(t, db, "last", "1")
	want["last"] = "1"
	stores.Crash(t, db)
	db = m.open("a", m.options())
	storetest.RequireContents(t, want, db)
	require.NoError(t, db.Close())
	require.Empty(t, m.files("a"))
	db = m.open("b", m.options())
	storetest.RequireContents(t, want, db)
	require.NoError(t, db.Close())
	return faults.Calls() >= nth
}
