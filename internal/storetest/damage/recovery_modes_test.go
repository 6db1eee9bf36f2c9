package damage

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/internal/wal"
	"github.com/siftkv/siftkv/kv"
)

// craftedLogs is a store of two logs of ten writes each, of 3000 bytes. Their names
// are returned, and where in each log its writes end.
type craftedLogs struct {
	dir   string
	first string // ended
	last  string // not ended
	sizes [2]int64
}

const craftedWrites = 10

func craftedKey(log, n int) string { return fmt.Sprintf("%d/%02d", log, n) }

// newCraftedLogs writes the logs, all of it with the durability o, and leaves them
// as a crash would.
func newCraftedLogs(t *testing.T, o *kv.WriteOptions) *craftedLogs {
	t.Helper()
	c := &craftedLogs{dir: t.TempDir()}
	flushing, flush := make(chan struct{}, 2), make(chan struct{})
	disk := &vfstest.GateFS{FS: vfs.OS, Table: func() { flushing <- struct{}{}; <-flush }}
	db := stores.OpenDir(t, c.dir, stores.With(harness.Harness{FS: disk},
		&kv.Options{MemtableSize: 1 << 20, SeparateFrom: -1})) // the logs have the values
	flushed := make(chan error, 1)
	rng := rand.New(rand.NewPCG(12, 12))
	for log, name := range []*string{&c.first, &c.last} {
		for n := range craftedWrites {
			require.NoError(t, db.Set([]byte(craftedKey(log, n)), storetest.RandomBytes(rng, 3000), o))
		}
		*name = storetest.NewestFile(t, vfs.OS, c.dir, manifest.FileWAL)
		info, err := os.Stat(*name)
		require.NoError(t, err)
		c.sizes[log] = info.Size()
		if log == 0 { // a flush begins a log, and makes no table before there is a copy
			go func() { flushed <- db.Flush(t.Context()) }()
			select {
			case <-flushing:
			case err := <-flushed:
				require.FailNow(t, "the flush made no table", "%v", err)
			}
		}
	}
	crashed := c.copied(t)
	require.NoError(t, os.Truncate(filepath.Join(crashed.dir, manifest.LockName), 0)) // it names this process
	close(flush)
	require.NoError(t, <-flushed)
	require.NoError(t, db.Close())
	return crashed
}

// copied returns a copy in another directory.
func (c *craftedLogs) copied(t *testing.T) *craftedLogs {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(c.dir)))
	in := func(name string) string { return filepath.Join(dir, filepath.Base(name)) }
	return &craftedLogs{dir: dir, first: in(c.first), last: in(c.last), sizes: c.sizes}
}

// A recoveryWant is what a mode makes of logs: a number of writes of each, or an error.
type recoveryWant struct {
	first, last int    // how many of the writes are there, from the front
	without     []int  // of the last log's, except these
	losses      int    // places that are reported
	err         string // a part of the error instead
}

const wholeLogs = craftedWrites

func TestRecoveryModes(t *testing.T) {
	t.Parallel() // it mostly waits for the disk
	whole := recoveryWant{first: wholeLogs, last: wholeLogs}
	refused := func(s string) recoveryWant { return recoveryWant{err: s} }
	notEnded := refused("not closed cleanly")
	crafted := map[*kv.WriteOptions]*craftedLogs{kv.Sync: newCraftedLogs(t, kv.Sync),
		kv.NoSync: newCraftedLogs(t, kv.NoSync)}
	require.NotEqual(t, crafted[kv.Sync].first, crafted[kv.Sync].last)
	for _, c := range []struct {
		what   string
		level  *kv.WriteOptions
		hurt   func(t *testing.T, c *craftedLogs)
		wanted [stores.RecoveryModes]recoveryWant // PointInTime, TolerateTornTail, Absolute, SkipCorrupt
	}{
		{"closed cleanly", kv.Sync, func(t *testing.T, c *craftedLogs) {
			require.NoError(t, stores.OpenDir(t, c.dir, nil).Close())
		}, [...]recoveryWant{whole, whole, whole, whole}},
		{"a crash between two writes", kv.Sync, func(*testing.T, *craftedLogs) {},
			[...]recoveryWant{whole, whole, notEnded, whole}},
		{"a torn tail", kv.NoSync, func(t *testing.T, c *craftedLogs) {
			require.NoError(t, os.Truncate(c.last, c.sizes[1]-100))
		}, [...]recoveryWant{{wholeLogs, 9, nil, 1, ""}, {wholeLogs, 9, nil, 1, ""}, refused("breaks off"),
			{wholeLogs, 9, nil, 1, ""}}},
		{"a zeroed tail", kv.NoSync, func(t *testing.T, c *craftedLogs) {
			storetest.Rewrite(t, c.last, func(b []byte) []byte { clear(b[len(b)-5000:]); return b })
		}, [...]recoveryWant{{wholeLogs, 8, nil, 1, ""}, {wholeLogs, 8, nil, 1, ""}, refused("breaks off"),
			{wholeLogs, 8, nil, 1, ""}}},
		{"zeros after the end", kv.Sync, func(t *testing.T, c *craftedLogs) {
			storetest.Rewrite(t, c.last, func(b []byte) []byte { return append(b, make([]byte, 4096)...) })
		}, [...]recoveryWant{{wholeLogs, wholeLogs, nil, 1, ""}, {wholeLogs, wholeLogs, nil, 1, ""},
			refused("breaks off"), {wholeLogs, wholeLogs, nil, 1, ""}}},
		{"a flip in the middle, synced", kv.Sync, func(t *testing.T, c *craftedLogs) {
			storetest.Rewrite(t, c.last, storetest.Flip(32+4*3030))
		}, [...]recoveryWant{refused("bad checksum"), refused("bad checksum"), refused("bad checksum"),
			{wholeLogs, wholeLogs, []int{3}, 1, ""}}},
		{"a flip in the middle, not synced", kv.NoSync, func(t *testing.T, c *craftedLogs) {
			storetest.Rewrite(t, c.last, storetest.Flip(32+4*3030))
		}, [...]recoveryWant{{wholeLogs, 4, nil, 1, ""}, refused("bad checksum"), refused("bad checksum"),
			{wholeLogs, wholeLogs, []int{4}, 1, ""}}},
		{"the first log has lost its end, the last was not synced", kv.NoSync, func(t *testing.T, c *craftedLogs) {
			require.NoError(t, os.Truncate(c.first, c.sizes[0]-100))
		}, [...]recoveryWant{{9, 0, nil, 2, ""}, refused("has lost its end"), refused("breaks off"),
			{9, wholeLogs, nil, 1, ""}}},
		{"the first log has lost its end, the last was synced", kv.Sync, func(t *testing.T, c *craftedLogs) {
			require.NoError(t, os.Truncate(c.first, c.sizes[0]))
		}, [...]recoveryWant{refused("has lost its end"), refused("has lost its end"), notEnded, whole}},
		{"the first log is missing", kv.NoSync, func(t *testing.T, c *craftedLogs) {
			require.NoError(t, os.Remove(c.first))
		}, [...]recoveryWant{refused("missing"), refused("missing"), refused("missing"), {0, wholeLogs, nil, 1, ""}}},
		{"the first log is empty, and was not synced", kv.NoSync, func(t *testing.T, c *craftedLogs) {
			require.NoError(t, os.Truncate(c.first, 0))
		}, [...]recoveryWant{{0, 0, nil, 1, ""}, refused("has lost its end"), notEnded, {0, wholeLogs, nil, 0, ""}}},
		{"the last log is empty", kv.Sync, func(t *testing.T, c *craftedLogs) {
			require.NoError(t, os.Truncate(c.last, 0))
		}, [...]recoveryWant{{wholeLogs, 0, nil, 0, ""}, {wholeLogs, 0, nil, 0, ""}, notEnded,
			{wholeLogs, 0, nil, 0, ""}}},
		{"the log's header is damaged", kv.NoSync, func(t *testing.T, c *craftedLogs) {
			storetest.Rewrite(t, c.last, storetest.Flip(17))
		}, [...]recoveryWant{{wholeLogs, 0, nil, 1, ""}, refused("header"), refused("header"),
			{wholeLogs, wholeLogs, nil, 1, ""}}},
		{"the last log is another program's", kv.NoSync, func(t *testing.T, c *craftedLogs) {
			storetest.Rewrite(t, c.last, storetest.Flip(3))
		}, [...]recoveryWant{refused("magic"), refused("magic"), refused("magic"), {wholeLogs, wholeLogs, nil, 1, ""}}},
		{"records come twice", kv.NoSync, func(t *testing.T, c *craftedLogs) {
			tables, err := filepath.Glob(filepath.Join(c.dir, "*.sst"))
			require.NoError(t, err)
			require.Empty(t, tables)
			reseal(t, c.last)
		}, [...]recoveryWant{refused("comes again"), refused("comes again"), refused("comes again"),
			{wholeLogs, wholeLogs, []int{9}, 1, ""}}},
	} {
		for mode, want := range c.wanted {
			t.Run(fmt.Sprintf("%s/%v", c.what, kv.RecoveryMode(mode)), func(t *testing.T) {
				logs := crafted[c.level].copied(t)
				c.hurt(t, logs)
				want.check(t, logs, kv.RecoveryMode(mode), true)
				want.check(t, logs, kv.RecoveryMode(mode), false)
			})
		}
	}
}

// reseal gives the last record of a log a sequence number that was there before.
func reseal(t *testing.T, name string) {
	rewriteRecords(t, name, func(records [][]byte) {
		last := records[len(records)-1]
		clear(last[:8])
		last[0] = 1
	})
}

func (w recoveryWant) check(t *testing.T, c *craftedLogs, mode kv.RecoveryMode, readOnly bool) {
	t.Helper()
	var losses []kv.DroppedInfo
	before := storetest.ReadDir(t, c.dir)
	db, err := kv.Open(c.dir, &kv.Options{MemtableSize: 1 << 20, ReadOnly: readOnly, RecoveryMode: mode,
		Events: kv.Events{
			RecoveryDropped: func(l kv.DroppedInfo) { losses = append(losses, l) },
		}})
	if w.err != "" {
		require.ErrorIs(t, err, kv.ErrCorruption)
		require.ErrorContains(t, err, w.err)
		require.ErrorContains(t, err, ".wal")
		require.Equal(t, before, storetest.ReadDir(t, c.dir), "the evidence was touched")
		return
	}
	require.NoError(t, err)
	gone := map[string]bool{}
	for _, n := range w.without {
		gone[craftedKey(1, n)] = true
	}
	for log, n := range []int{w.first, w.last} {
		for i := range craftedWrites {
			k := craftedKey(log, i)
			ok, err := db.Has([]byte(k))
			require.NoError(t, err)
			require.Equal(t, i < n && !gone[k], ok, "%s; %+v", k, losses)
		}
	}
	m := db.Metrics()
	require.Len(t, losses, w.losses, "%+v", losses)
	require.EqualValues(t, w.losses, m.RecoveryDrops)
	bytes := int64(0)
	for _, l := range losses {
		bytes += l.Bytes
		require.True(t, strings.HasSuffix(l.File, ".wal"))
		require.NotEmpty(t, l.Reason)
	}
	require.EqualValues(t, bytes, m.RecoveryDroppedBytes)
	require.NoError(t, db.Close())
}

func TestUnknownRecoveryModesAreRefused(t *testing.T) {
	_, err := kv.Open(t.TempDir(), &kv.Options{RecoveryMode: stores.RecoveryModes})
	require.ErrorIs(t, err, kv.ErrInvalidOptions)
	require.Equal(t, "RecoveryMode(4)", stores.RecoveryModes.String())
	require.Equal(t, "SkipCorrupt", kv.SkipCorrupt.String())
}

// rewriteRecords writes a log again with its records changed.
func rewriteRecords(t *testing.T, name string, change func(records [][]byte)) {
	t.Helper()
	kind, num := manifest.ParseFileName(filepath.Base(name))
	require.Equal(t, manifest.FileWAL, kind)
	f, err := vfs.OS.Open(name)
	require.NoError(t, err)
	r := wal.NewReader(f, name, num)
	var records [][]byte
	for {
		record, err := r.Next()
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
			break
		}
		records = append(records, bytes.Clone(record))
	}
	require.NoError(t, f.Close())
	change(records)
	out, err := vfs.OS.Create(name)
	require.NoError(t, err)
	w := wal.NewWriter(out, num)
	for _, record := range records {
		require.NoError(t, w.Append(record))
	}
	require.NoError(t, w.Flush())
	require.NoError(t, out.Close())
}
