package kv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

func TestAMissingLogIsAHoleAndAnError(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, &Options{MemtableSize: 64 << 10, MaxMemtables: 8})
	require.NoError(t, err)
	stopFlushes(db, true) // no flush takes the logs away
	first := manifest.Path(db.dir, manifest.FileWAL, db.logNum)
	for i := range 3000 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "%06d", i), make([]byte, 50), NoSync))
	}
	db.mu.Lock()
	require.NotEmpty(t, db.imms)
	db.mu.Unlock()
	stopFlushes(db, false)
	require.NoError(t, db.Close())
	require.NoError(t, os.Remove(first))
	_, err = Open(dir, nil)
	require.ErrorIs(t, err, ErrCorruption)
	require.ErrorContains(t, err, first)
}

// An Open that fails leaves no file open, at any call. The logs overwrite blob values, so recovery reads in tables how
// many bytes they hide.
func TestAFailedOpenClosesWhatItOpened(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	o := Options{harness: harness.Harness{FS: mem, Backoff: never}, SeparateFrom: 50}
	db, err := Open("db", &o)
	require.NoError(t, err)
	for round := range 2 {
		for i := range 20 {
			require.NoError(t, db.Set(fmt.Appendf(nil, "%02d", i), make([]byte, 100+round), Sync))
		}
		if round == 0 {
			require.NoError(t, db.Compact(t.Context(), nil, nil))
		}
	}
	require.NoError(t, db.Close()) // which flushes nothing
	again := storetest.CopyDir(t, mem, "db")
	broken, failures := errors.New("this call fails"), 0
	for n := 1; ; n++ {
		left, err := mem.List("db")
		require.NoError(t, err)
		for _, name := range left {
			require.NoError(t, mem.Remove(filepath.Join("db", name)))
		}
		again()
		open := &atomic.Int64{}
		faults := &vfstest.FaultFS{FS: storetest.OpenFS{FS: mem, Opened: open}}
		faults.Set(func(c vfstest.Call) (int, error) {
			if c.N == n {
				return 0, broken
			}
			return 0, nil
		})
		o.harness.FS = faults
		db, err := Open("db", &o)
		if err != nil {
			failures++
			require.Zero(t, open.Load(), "after call %d failed", n)
			continue
		}
		faults.Set(nil)
		_ = db.Close()
		require.Zero(t, open.Load(), "call %d", n)
		if faults.Calls < n { // Close makes some calls too, so that each of Open came first
			break
		}
	}
	require.Greater(t, failures, 20)
}

// BenchmarkOpenReadOnly opens a view of a store whose log has one write.
func BenchmarkOpenReadOnly(b *testing.B) {
	dir := b.TempDir()
	db := openDir(b, dir, &Options{harness: harness.Harness{FS: vfs.OS}})
	set(b, db, "k", "v")
	for b.Loop() {
		view, err := OpenReadOnly(dir, nil)
		require.NoError(b, err)
		require.NoError(b, view.Close())
	}
	require.NoError(b, db.Close())
}
