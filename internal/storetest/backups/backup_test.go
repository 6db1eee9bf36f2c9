package backups

import (
	"bytes"
	"context"
	"errors"
	"io"
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
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// TestBackupAndCheckpointWhileTheStoreIsWritten has a writer that counts up in a
// write, an ingest, a write; four keys that are written one after the other; flushes
// and compactions. What a backup or a checkpoint holds is one moment of that.
func TestBackupAndCheckpointWhileTheStoreIsWritten(t *testing.T) {
	t.Parallel()
	dir, from := t.TempDir(), t.TempDir()
	rng := rand.New(rand.NewPCG(4, 708))
	o := stores.RandomOptions(rng)
	o.SeparateFrom, harness.Of(o).BlobSize = 100, 10<<10
	db := stores.OpenDir(t, dir, o)
	var done atomic.Bool
	var acknowledged atomic.Int64
	var others sync.WaitGroup
	others.Go(func() {
		pad := bytes.Repeat([]byte("x"), 500)
		for i := 1; !done.Load(); i++ {
			n := strconv.Itoa(i)
			require.NoError(t, db.Set([]byte("a"), append([]byte(n+" "), pad...),
				[]*kv.WriteOptions{kv.Sync, kv.NoSync, kv.Async}[i%3]))
			if i%10 == 0 {
				path := storetest.IngestFile(t, vfs.OS, filepath.Join(from, n), nil, "b="+n)
				require.NoError(t, db.Ingest(t.Context(), []string{path}, nil))
				require.NoError(t, os.Remove(path))
			} else {
				require.NoError(t, db.Set([]byte("b"), []byte(n), kv.Async))
			}
			b := db.NewBatch()
			require.NoError(t, b.DeleteRange([]byte("c"), []byte("e")))
			require.NoError(t, b.Set([]byte("c"), []byte(n)))
			require.NoError(t, b.Set([]byte("d"), []byte(n)))
			require.NoError(t, b.Commit(kv.Async))
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
		require.NoError(t, kv.Verify(t.Context(), dir, io.Discard))
		copied := stores.OpenDir(t, dir, nil)
		n := map[string]int64{}
		for _, k := range []string{"a", "b", "c", "d"} {
			if v, err := copied.Get([]byte(k)); !errors.Is(err, kv.ErrNotFound) {
				require.NoError(t, err)
				n[k] = storetest.LeadingNumber(t, v)
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
	var mark kv.BackupMark
	var chain [][]byte
	for range max(scale.Count(3, 7), 2) {
		least := acknowledged.Load()
		copied := filepath.Join(t.TempDir(), "checkpoint")
		require.NoError(t, db.Checkpoint(t.Context(), copied))
		check(copied, least)

		least = acknowledged.Load()
		stream, m := stores.BackUp(t, db, mark)
		chain, mark = append(chain, stream), m
		restored := filepath.Join(t.TempDir(), "restored")
		for _, s := range chain {
			require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(s), restored, nil))
		}
		check(restored, least)
	}
	done.Store(true)
	others.Wait()
	require.NoError(t, db.Close())
}

// brokenPipe takes and keeps the bytes that are left.
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
func TestABackupGoesOn(t *testing.T) { stores.InTablesAndSeparated(t, testABackupGoesOn) }

func testABackupGoesOn(t *testing.T, from int) {
	probe, _ := stores.OfTables(t, from)
	whole, _ := stores.BackUp(t, probe, kv.BackupMark{})
	skipped := 0
	for cut := 0; cut <= len(whole); cut += 97 {
		db, m := stores.OfTables(t, from)
		first := &brokenPipe{left: cut}
		mark, err := db.Backup(t.Context(), first, kv.BackupMark{})
		if err != nil {
			require.ErrorIs(t, err, errPipe)
		}
		m = stores.AddTables(t, db, m, "second", 1)
		second := &brokenPipe{left: cut / 3}
		mark2, err := db.Backup(t.Context(), second, mark)
		if err != nil {
			require.ErrorIs(t, err, errPipe)
		}
		m = stores.AddTables(t, db, m, "third", 1)
		third, _ := stores.BackUp(t, db, mark2)
		disk := vfs.NewMem()
		o := stores.With(harness.Harness{FS: disk}, &kv.Options{})
		restored := false
		if !mark.IsZero() {
			err := kv.Restore(t.Context(), &first.Buffer, "dir", o)
			restored = err == nil || errors.Is(err, kv.ErrRestoreUnfinished)
			require.True(t, restored, "%v", err)
			if len(third) < len(whole) {
				skipped++
			}
		}
		if mark2.IsZero() != mark.IsZero() || restored && mark2 != mark {
			err := kv.Restore(t.Context(), &second.Buffer, "dir", o)
			require.True(t, err == nil || errors.Is(err, kv.ErrRestoreUnfinished), "%v", err)
		}
		require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(third), "dir", o), "cut at %d", cut)
		stores.RequireRestored(t, disk, "dir", m)
	}
	require.NotZero(t, skipped, "no backup was spared the files of the one before")
}

func TestBackupEndsWithItsContextAndAtDamage(t *testing.T) {
	t.Parallel()
	stores.InTablesAndSeparated(t, testBackupEndsWithItsContextAndAtDamage)
}

func testBackupEndsWithItsContextAndAtDamage(t *testing.T, from int) {
	db, _ := stores.OfTables(t, from)
	ctx, cancel := context.WithCancel(context.Background())
	var b bytes.Buffer
	_, err := db.Backup(ctx, storetest.WriterFunc(func(p []byte) (int, error) {
		if b.Len() > 200 {
			cancel()
		}
		return b.Write(p)
	}), kv.BackupMark{})
	require.ErrorIs(t, err, context.Canceled)
	full, _ := stores.BackUp(t, db, kv.BackupMark{})
	disk := vfs.NewMem()
	err = kv.Restore(ctx, bytes.NewReader(full), "dir", stores.With(harness.Harness{FS: disk}, &kv.Options{}))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, kv.ErrRestoreUnfinished)

	dir, _ := stores.Damageable(t)
	table := storetest.OnlyFile(t, dir, manifest.FileTable)
	storetest.Rewrite(t, table, storetest.Flip(700))
	damaged := stores.OpenDir(t, dir, nil)
	_, err = damaged.Backup(t.Context(), io.Discard, kv.BackupMark{})
	storetest.RequireDamage(t, err, table, -1)
	require.NoError(t, damaged.Close())
	_, err = damaged.Backup(t.Context(), io.Discard, kv.BackupMark{})
	require.ErrorIs(t, err, kv.ErrClosed)
}
