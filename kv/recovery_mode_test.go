package kv

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
	"github.com/stretchr/testify/require"
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
func newCraftedLogs(t *testing.T, o *WriteOptions) *craftedLogs {
	t.Helper()
	c := &craftedLogs{dir: t.TempDir()}
	db := openDir(t, c.dir, &Options{MemtableSize: 1 << 20, SeparateFrom: -1}) // the logs have the values
	db.mu.Lock()
	db.flushing = true // no flush takes the logs away
	db.mu.Unlock()
	rng := rand.New(rand.NewPCG(12, 12))
	for log := range 2 {
		for n := range craftedWrites {
			require.NoError(t, db.Set([]byte(craftedKey(log, n)), randomBytes(rng, 3000), o))
		}
		name := manifest.Path(db.dir, manifest.FileWAL, db.commits.Log().ID())
		c.sizes[log] = db.commits.Log().Size()
		if log == 1 {
			c.last = name
			break
		}
		c.first = name
		require.NoError(t, exclusive(db, func() error {
			db.mu.Lock()
			defer db.mu.Unlock()
			return db.rotateTo(0, nil)
		}))
	}
	db.mu.Lock()
	db.flushing = false
	db.mu.Unlock()
	require.NoError(t, db.abandon())
	return c
}

// A recoveryWant is what a mode makes of logs: so many writes of each, or an error.
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
	for _, c := range []struct {
		what   string
		level  *WriteOptions
		hurt   func(t *testing.T, c *craftedLogs)
		wanted [numRecoveryModes]recoveryWant // PointInTime, TolerateTornTail, Absolute, SkipCorrupt
	}{
		{"closed cleanly", Sync, func(t *testing.T, c *craftedLogs) {
			require.NoError(t, openDir(t, c.dir, nil).Close())
		}, [...]recoveryWant{whole, whole, whole, whole}},
		{"a crash between two writes", Sync, func(*testing.T, *craftedLogs) {},
			[...]recoveryWant{whole, whole, notEnded, whole}},
		{"a torn tail", NoSync, func(t *testing.T, c *craftedLogs) {
			require.NoError(t, os.Truncate(c.last, c.sizes[1]-100))
		}, [...]recoveryWant{{wholeLogs, 9, nil, 1, ""}, {wholeLogs, 9, nil, 1, ""}, refused("breaks off"),
			{wholeLogs, 9, nil, 1, ""}}},
		{"a zeroed tail", NoSync, func(t *testing.T, c *craftedLogs) {
			rewrite(t, c.last, func(b []byte) []byte { clear(b[len(b)-5000:]); return b })
		}, [...]recoveryWant{{wholeLogs, 8, nil, 1, ""}, {wholeLogs, 8, nil, 1, ""}, refused("breaks off"),
			{wholeLogs, 8, nil, 1, ""}}},
		{"zeros after the end", Sync, func(t *testing.T, c *craftedLogs) {
			rewrite(t, c.last, func(b []byte) []byte { return append(b, make([]byte, 4096)...) })
		}, [...]recoveryWant{{wholeLogs, wholeLogs, nil, 1, ""}, {wholeLogs, wholeLogs, nil, 1, ""},
			refused("breaks off"), {wholeLogs, wholeLogs, nil, 1, ""}}},
		{"a flip in the middle, synced", Sync, func(t *testing.T, c *craftedLogs) {
			rewrite(t, c.last, flip(32+4*3030))
		}, [...]recoveryWant{refused("bad checksum"), refused("bad checksum"), refused("bad checksum"),
			{wholeLogs, wholeLogs, []int{3}, 1, ""}}},
		{"a flip in the middle, not synced", NoSync, func(t *testing.T, c *craftedLogs) {
			rewrite(t, c.last, flip(32+4*3030))
		}, [...]recoveryWant{{wholeLogs, 4, nil, 1, ""}, refused("bad checksum"), refused("bad checksum"),
			{wholeLogs, wholeLogs, []int{4}, 1, ""}}},
		{"the first log has lost its end, the last was not synced", NoSync, func(t *testing.T, c *craftedLogs) {
			require.NoError(t, os.Truncate(c.first, c.sizes[0]-100))
		}, [...]recoveryWant{{9, 0, nil, 2, ""}, refused("has lost its end"), refused("breaks off"),
			{9, wholeLogs, nil, 1, ""}}},
		{"the first log has lost its end, the last was synced", Sync, func(t *testing.T, c *craftedLogs) {
			require.NoError(t, os.Truncate(c.first, c.sizes[0]))
		}, [...]recoveryWant{refused("has lost its end"), refused("has lost its end"), notEnded, whole}},
		{"the first log is missing", NoSync, func(t *testing.T, c *craftedLogs) {
			require.NoError(t, os.Remove(c.first))
		}, [...]recoveryWant{refused("missing"), refused("missing"), refused("missing"), {0, wholeLogs, nil, 1, ""}}},
		{"the first log is empty, and was not synced", NoSync, func(t *testing.T, c *craftedLogs) {
			require.NoError(t, os.Truncate(c.first, 0))
		}, [...]recoveryWant{{0, 0, nil, 1, ""}, refused("has lost its end"), notEnded, {0, wholeLogs, nil, 0, ""}}},
		{"the last log is empty", Sync, func(t *testing.T, c *craftedLogs) {
			require.NoError(t, os.Truncate(c.last, 0))
		}, [...]recoveryWant{{wholeLogs, 0, nil, 0, ""}, {wholeLogs, 0, nil, 0, ""}, notEnded,
			{wholeLogs, 0, nil, 0, ""}}},
		{"the log's header is damaged", NoSync, func(t *testing.T, c *craftedLogs) {
			rewrite(t, c.last, flip(17))
		}, [...]recoveryWant{{wholeLogs, 0, nil, 1, ""}, refused("header"), refused("header"),
			{wholeLogs, wholeLogs, nil, 1, ""}}},
		{"the last log is another program's", NoSync, func(t *testing.T, c *craftedLogs) {
			rewrite(t, c.last, flip(3))
		}, [...]recoveryWant{refused("magic"), refused("magic"), refused("magic"), {wholeLogs, wholeLogs, nil, 1, ""}}},
		{"records come twice", NoSync, func(t *testing.T, c *craftedLogs) {
			tables, err := filepath.Glob(filepath.Join(c.dir, "*.sst"))
			require.NoError(t, err)
			require.Empty(t, tables)
			reseal(t, c.last)
		}, [...]recoveryWant{refused("comes again"), refused("comes again"), refused("comes again"),
			{wholeLogs, wholeLogs, []int{9}, 1, ""}}},
	} {
		for mode, want := range c.wanted {
			t.Run(fmt.Sprintf("%s/%v", c.what, RecoveryMode(mode)), func(t *testing.T) {
				logs := newCraftedLogs(t, c.level)
				c.hurt(t, logs)
				want.check(t, logs, RecoveryMode(mode), true)
				want.check(t, logs, RecoveryMode(mode), false)
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

func (w recoveryWant) check(t *testing.T, c *craftedLogs, mode RecoveryMode, readOnly bool) {
	t.Helper()
	var losses []DroppedInfo
	before := readDir(t, c.dir)
	db, err := Open(c.dir, &Options{MemtableSize: 1 << 20, ReadOnly: readOnly, RecoveryMode: mode, Events: Events{
		RecoveryDropped: func(l DroppedInfo) { losses = append(losses, l) },
	}})
	if w.err != "" {
		require.ErrorIs(t, err, ErrCorruption)
		require.ErrorContains(t, err, w.err)
		require.ErrorContains(t, err, ".wal")
		require.Equal(t, before, readDir(t, c.dir), "the evidence was touched")
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
	_, err := Open(t.TempDir(), &Options{RecoveryMode: numRecoveryModes})
	require.ErrorIs(t, err, ErrInvalidOptions)
	require.Equal(t, "RecoveryMode(4)", numRecoveryModes.String())
	require.Equal(t, "SkipCorrupt", SkipCorrupt.String())
}

// rewriteRecords writes a log anew with its records changed.
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
