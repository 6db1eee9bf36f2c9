package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
)

// backUp returns the stream of a backup, and its mark after a round trip through its
// encoding.
func backUp(t *testing.T, db *DB, since BackupMark) ([]byte, BackupMark) {
	t.Helper()
	var b bytes.Buffer
	m, err := db.Backup(t.Context(), &b, since)
	require.NoError(t, err)
	verified, err := VerifyBackup(bytes.NewReader(b.Bytes()))
	require.NoError(t, err)
	require.Equal(t, m, verified)
	encoded, err := m.MarshalBinary()
	require.NoError(t, err)
	var again BackupMark
	require.NoError(t, again.UnmarshalBinary(encoded))
	require.Equal(t, m, again)
	return b.Bytes(), again
}

// requireRestored checks a directory of a file system against a model, without
// opening it for writing.
func requireRestored(t *testing.T, fsys vfs.FS, dir string, want storetest.Model) {
	t.Helper()
	requireRestoredAt(t, fsys, dir, want, &storetest.Clock{})
}

func requireRestoredAt(t *testing.T, fsys vfs.FS, dir string, want storetest.Model, clock *storetest.Clock) {
	t.Helper()
	db, err := Open(dir, &Options{ReadOnly: true, harness: harness.Harness{FS: fsys}, Clock: clock.Time})
	require.NoError(t, err)
	requireContents(t, want, db)
	require.NoError(t, db.verify(io.Discard))
	require.NoError(t, db.Close())
}

// TestBackupAndCheckpointWhileTheStoreIsWritten has a writer that counts up in a
// write, an ingest, a write; four keys that are written one after the other; flushes
// and compactions. What a backup or a checkpoint holds is one moment of that.
func TestBackupAndCheckpointWhileTheStoreIsWritten(t *testing.T) {
	t.Parallel()
	dir, from := t.TempDir(), t.TempDir()
	rng := rand.New(rand.NewPCG(4, 708))
	o := randomOptions(rng)
	o.SeparateFrom, o.harness.BlobSize = 100, 10<<10
	db := openDir(t, dir, o)
	var done atomic.Bool
	var acknowledged atomic.Int64
	var others sync.WaitGroup
	others.Go(func() {
		pad := bytes.Repeat([]byte("x"), 500)
		for i := 1; !done.Load(); i++ {
			n := strconv.Itoa(i)
			require.NoError(t, db.Set([]byte("a"), append([]byte(n+" "), pad...),
				[]*WriteOptions{Sync, NoSync, Async}[i%3]))
			if i%10 == 0 {
				path := ingestFile(t, vfs.OS, filepath.Join(from, n), nil, "b="+n)
				require.NoError(t, db.Ingest(t.Context(), []string{path}, nil))
				require.NoError(t, os.Remove(path))
			} else {
				require.NoError(t, db.Set([]byte("b"), []byte(n), Async))
			}
			b := db.NewBatch()
			require.NoError(t, b.DeleteRange([]byte("c"), []byte("e")))
			require.NoError(t, b.Set([]byte("c"), []byte(n)))
			require.NoError(t, b.Set([]byte("d"), []byte(n)))
			require.NoError(t, b.Commit(Async))
			acknowledged.Store(int64(i))
		}
	})
	others.Go(func() {
		for !done.Load() {
			require.NoError(t, db.Compact(t.Context(), nil, nil))
			require.NoError(t, db.Flush(t.Context()))
		}
	})
	check := func(dir string, least int64) {
		require.NoError(t, Verify(t.Context(), dir, io.Discard))
		copied := openDir(t, dir, nil)
		n := map[string]int64{}
		for _, k := range []string{"a", "b", "c", "d"} {
			if v, err := copied.Get([]byte(k)); !errors.Is(err, ErrNotFound) {
				require.NoError(t, err)
				n[k] = count(t, v)
			}
		}
		require.GreaterOrEqual(t, n["c"], least, "a write that was acknowledged before is missing")
		require.GreaterOrEqual(t, n["a"], n["b"])
		require.GreaterOrEqual(t, n["b"], n["c"])
		require.Equal(t, n["c"], n["d"], "half a batch")
		require.LessOrEqual(t, n["a"]-n["c"], int64(1), "a hole")
		require.NoError(t, copied.Set([]byte("a"), []byte("0"), nil))
		require.NoError(t, copied.Close())
		names, err := filepath.Glob(filepath.Join(dir, "*.wal"))
		require.NoError(t, err)
		require.Len(t, names, 1, "the log of the store that was just opened, and none before")
	}
	var mark BackupMark
	var chain [][]byte
	for range max(scale.Count(3, 7), 2) {
		least := acknowledged.Load()
		copied := filepath.Join(t.TempDir(), "checkpoint")
		require.NoError(t, db.Checkpoint(t.Context(), copied))
		check(copied, least)

		least = acknowledged.Load()
		stream, m := backUp(t, db, mark)
		chain, mark = append(chain, stream), m
		restored := filepath.Join(t.TempDir(), "restored")
		for _, s := range chain {
			require.NoError(t, Restore(t.Context(), bytes.NewReader(s), restored, nil))
		}
		check(restored, least)
	}
	done.Store(true)
	others.Wait()
	require.NoError(t, db.Close())
}

// inTablesAndApart runs a test with values in tables, and with all of them in blob files.
func inTablesAndApart(t *testing.T, test func(t *testing.T, from int)) {
	for name, from := range map[string]int{"in tables": 0, "apart": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, from)
		})
	}
}

// backupStoreFrom makes a store of several tables, with values from a size on apart, and returns it with what it holds.
func backupStoreFrom(t *testing.T, from int) (*DB, storetest.Model) {
	t.Helper()
	db, err := Open("db", &Options{harness: harness.Harness{FS: vfs.NewMem()}, Compression: sstable.NoCompression,
		L0CompactionThreshold: 100,
		L0SlowdownThreshold:   200, L0StopThreshold: 300, SeparateFrom: from})
	require.NoError(t, err)
	closeAtEnd(t, db)
	return db, addTables(t, db, storetest.Model{}, "first", 3)
}

// addTables adds tables to a store, each with a key of its own and one of all, and
// deletes what was under the name before.
func addTables(t *testing.T, db *DB, m storetest.Model, name string, n int) storetest.Model {
	t.Helper()
	m = maps.Clone(m)
	for i := range n {
		for _, k := range []string{fmt.Sprintf("%s/%d", name, i), "all"} {
			m[k] = name + strconv.Itoa(i)
			set(t, db, k, m[k])
		}
		require.NoError(t, db.Delete([]byte("first/1"), nil))
		delete(m, "first/1")
		require.NoError(t, db.Flush(t.Context()))
	}
	return m
}

// brokenPipe takes so many bytes, and keeps them.
type brokenPipe struct {
	bytes.Buffer
	left int
}

var errPipe = errors.New("broken pipe")

func (p *brokenPipe) Write(b []byte) (int, error) {
	n := min(p.left, len(b))
	p.left -= n
	p.Buffer.Write(b[:n])
	if n < len(b) {
		return n, errPipe
	}
	return n, nil
}

// TestABackupGoesOn breaks a backup off, goes on with the store as it is later, breaks
// that off too, and restores what there is of the three streams.
func TestABackupGoesOn(t *testing.T) { inTablesAndApart(t, testABackupGoesOn) }

func testABackupGoesOn(t *testing.T, from int) {
	probe, _ := backupStoreFrom(t, from)
	whole, _ := backUp(t, probe, BackupMark{})
	skipped := 0
	for cut := 0; cut <= len(whole); cut += 97 {
		db, m := backupStoreFrom(t, from)
		first := &brokenPipe{left: cut}
		mark, err := db.Backup(t.Context(), first, BackupMark{})
		if err != nil {
			require.ErrorIs(t, err, errPipe)
		}
		m = addTables(t, db, m, "second", 1)
		second := &brokenPipe{left: cut / 3}
		mark2, err := db.Backup(t.Context(), second, mark)
		if err != nil {
			require.ErrorIs(t, err, errPipe)
		}
		m = addTables(t, db, m, "third", 1)
		third, _ := backUp(t, db, mark2)
		disk := vfs.NewMem()
		o := &Options{harness: harness.Harness{FS: disk}}
		restored := false
		if !mark.IsZero() {
			err := Restore(t.Context(), &first.Buffer, "dir", o)
			restored = err == nil || errors.Is(err, ErrRestoreUnfinished)
			require.True(t, restored, "%v", err)
			if len(third) < len(whole) {
				skipped++
			}
		}
		if mark2.IsZero() != mark.IsZero() || restored && mark2.m != mark.m {
			err := Restore(t.Context(), &second.Buffer, "dir", o)
			require.True(t, err == nil || errors.Is(err, ErrRestoreUnfinished), "%v", err)
		}
		require.NoError(t, Restore(t.Context(), bytes.NewReader(third), "dir", o), "cut at %d", cut)
		requireRestored(t, disk, "dir", m)
	}
	require.NotZero(t, skipped, "no backup was spared the files of the one before")
}

func TestBackupEndsWithItsContextAndAtDamage(t *testing.T) {
	t.Parallel()
	inTablesAndApart(t, testBackupEndsWithItsContextAndAtDamage)
}

func testBackupEndsWithItsContextAndAtDamage(t *testing.T, from int) {
	db, _ := backupStoreFrom(t, from)
	ctx, cancel := context.WithCancel(context.Background())
	var b bytes.Buffer
	_, err := db.Backup(ctx, writerFunc(func(p []byte) (int, error) {
		if b.Len() > 200 {
			cancel()
		}
		return b.Write(p)
	}), BackupMark{})
	require.ErrorIs(t, err, context.Canceled)
	full, _ := backUp(t, db, BackupMark{})
	disk := vfs.NewMem()
	err = Restore(ctx, bytes.NewReader(full), "dir", &Options{harness: harness.Harness{FS: disk}})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, ErrRestoreUnfinished)

	dir, _ := damageStore(t)
	table := only(t, dir, manifest.FileTable)
	rewrite(t, table, flip(700))
	damaged := openDir(t, dir, nil)
	_, err = damaged.Backup(t.Context(), io.Discard, BackupMark{})
	requireDamage(t, err, table, -1)
	require.NoError(t, damaged.Close())
	_, err = damaged.Backup(t.Context(), io.Discard, BackupMark{})
	require.ErrorIs(t, err, ErrClosed)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
