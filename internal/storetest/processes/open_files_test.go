//go:build unix

package processes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// The most files that the child may have open: a Go program has a handful of its own.
const childFiles = 40

func init() {
	children["files"] = func(dir string) error {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: childFiles, Max: childFiles}); err != nil {
			return err
		}
		return useManyFiles(dir, storetest.EnvInt(storetest.ChildSeedEnv, 0))
	}
}

// A process that may open fewer files than the store has, and than MaxOpenFiles says, does all
// it is asked, and damages nothing.
func TestOpenFilesOfAProcessThatMayHaveFew(t *testing.T) {
	scale.OneGoroutine(t, "the files of one process are counted; TestOpenFilesAreBounded has several readers")
	t.Parallel()
	for _, most := range []int{30, 1000} {
		dir := t.TempDir()
		out, err := storetest.Child(t, "files", dir, most).CombinedOutput()
		require.NoError(t, err, "%s", out)
		db := stores.OpenDir(t, dir, nil)
		require.Zero(t, db.Metrics().QuarantinedTables)
		require.NoError(t, db.Close())
		require.NoError(t, kv.Verify(t.Context(), dir, io.Discard))
	}
}

func manyKey(i int) []byte { return fmt.Appendf(nil, "%05d", i*7919%manyKeys) }

const manyKeys = 14000

// useManyFiles writes, reads, scans, compacts, verifies and copies a store of some hundred
// tables. No step fails.
func useManyFiles(dir string, most int) error {
	db, err := kv.Open(dir, &kv.Options{MaxOpenFiles: most, CacheSize: -1, MemtableSize: 64 << 10,
		TargetFileSize: 16 << 10,
		BaseLevelSize:  16 << 10, Compression: sstable.NoCompression})
	if err != nil {
		return err
	}
	for round := range 2 {
		for i := range manyKeys {
			if err := db.Set(manyKey(i), fmt.Appendf(nil, "%0200d", i+round), kv.Async); err != nil {
				return err
			}
			if i%8 > 0 {
				continue
			}
			if _, err := db.Get(manyKey(i / 2)); err != nil {
				return err
			}
		}
		if err := errors.Join(db.Flush(context.Background()), db.Compact(context.Background(), nil, nil),
			readManyFiles(db, round)); err != nil {
			return err
		}
	}
	m := db.Metrics()
	if m.Levels[kv.NumLevels-1].Files < 2*childFiles || m.OpenFiles > childFiles || m.Failures+m.FailedCompactions > 0 {
		return fmt.Errorf("%d files, %d open, %d failures, %d failed compactions", m.Levels[kv.NumLevels-1].Files,
			m.OpenFiles, m.Failures, m.FailedCompactions)
	}
	if err := errors.Join(db.Checkpoint(context.Background(), filepath.Join(dir, "copy")), db.Close()); err != nil {
		return err
	}
	return kv.Verify(context.Background(), filepath.Join(dir, "copy"), io.Discard)
}

func readManyFiles(db *kv.DB, round int) error {
	for i := range manyKeys {
		v, err := db.Get(manyKey(i))
		if want := fmt.Sprintf("%0200d", i+round); err != nil || string(v) != want {
			return fmt.Errorf("key %d: %.20q, %w", i, v, err)
		}
	}
	it, err := db.NewIter(nil)
	if err != nil {
		return err
	}
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	if n != manyKeys {
		return fmt.Errorf("the scan found %d keys", n)
	}
	return it.Close()
}
