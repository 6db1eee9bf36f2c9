package kills

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// separatedOptions are those of the store whose backups and restores are killed: values of at
// least 300 bytes are separated, into many blob files.
func separatedOptions() *kv.Options {
	return stores.With(harness.Harness{BlobSize: 4 << 10}, &kv.Options{SeparateFrom: 300, MemtableSize: 64 << 10,
		Compression: sstable.NoCompression})
}

func init() {
	children["back up"], children["restore into a directory"] = backUpUntilKilled, restoreDirUntilKilled
}

// backUpUntilKilled writes to the store in dir and backs it up, into a file that is as long as what it was given,
// with a step before each write of either.
func backUpUntilKilled(dir string) error {
	db, err := kv.Open(filepath.Join(dir, "store"), separatedOptions())
	if err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(dir, "broken"))
	if err != nil {
		return err
	}
	for i := range 50 {
		if err := db.Set(fmt.Appendf(nil, "child%02d", i), bytes.Repeat([]byte{'c'}, 400), kv.Sync); err != nil {
			return err
		}
		storetest.Step()
	}
	_, err = db.Backup(context.Background(), storetest.WriterFunc(func(b []byte) (int, error) {
		storetest.Step()
		return out.Write(b)
	}), kv.BackupMark{})
	return errors.Join(err, out.Close(), db.Close())
}

// restoreDirUntilKilled restores the file stream into the directory restored, with a step before each read.
func restoreDirUntilKilled(dir string) error {
	f, err := os.Open(filepath.Join(dir, "stream"))
	if err != nil {
		return err
	}
	return kv.Restore(context.Background(), storetest.ReaderFunc(func(p []byte) (int, error) {
		storetest.Step()
		return f.Read(p)
	}), filepath.Join(dir, "restored"), nil)
}

// A process that backs a store up, or restores one, is killed anywhere: the store is whole, what there is of a stream
// becomes no store, and the restore ends with the whole stream.
func TestBackupAndRestoreAreKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	db := stores.OpenDir(t, at("store"), separatedOptions())
	m := storetest.Model{}
	for i := range 200 {
		k := fmt.Sprintf("key%03d", i)
		m[k] = string(bytes.Repeat([]byte{byte('a' + i%26)}, i*7))
		require.NoError(t, db.Set([]byte(k), []byte(m[k]), kv.NoSync))
	}
	require.NoError(t, db.Close())
	broken := 0
	for lines := 20; storetest.KillAfter(t, "back up", dir, lines); lines += 37 {
		db := stores.OpenDir(t, at("store"), separatedOptions())
		for i := range 50 {
			if k := fmt.Sprintf("child%02d", i); i < lines {
				m[k] = string(bytes.Repeat([]byte{'c'}, 400))
			} else {
				has, err := db.Has([]byte(k)) // it may be one write further than it said
				require.NoError(t, err)
				if has {
					m[k] = string(bytes.Repeat([]byte{'c'}, 400))
				}
			}
		}
		storetest.RequireContents(t, m, db)
		storetest.RequireBlobs(t, db)
		stream, _ := stores.BackUp(t, db, kv.BackupMark{})
		require.NoError(t, os.WriteFile(at("stream"), stream, 0o600))
		require.NoError(t, db.Close())
		part, err := os.ReadFile(at("broken"))
		require.NoError(t, err)
		if _, err := kv.VerifyBackup(bytes.NewReader(part)); err != nil {
			broken++
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			disk := vfs.NewMem()
			require.Error(t, kv.Restore(t.Context(), bytes.NewReader(part), "dir",
				stores.With(harness.Harness{FS: disk}, &kv.Options{})))
			_, err = kv.Open("dir", stores.With(harness.Harness{FS: disk}, &kv.Options{ReadOnly: true}))
			require.Error(t, err)
		}
	}
	require.Greater(t, broken, 2)
	stream, err := os.ReadFile(at("stream"))
	require.NoError(t, err)
	unfinished := 0
	for lines := 1; ; lines += 31 {
		require.NoError(t, os.RemoveAll(at("restored")))
		killed := storetest.KillAfter(t, "restore into a directory", dir, lines)
		view, err := kv.Open(at("restored"), &kv.Options{ReadOnly: true})
		switch {
		case err == nil:
			require.NoError(t, view.Close())
		case errors.Is(err, kv.ErrRestoreUnfinished):
			unfinished++
		default:
			require.ErrorIs(t, err, kv.ErrNotExist)
		}
		require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(stream), at("restored"), nil))
		stores.RequireRestored(t, vfs.OS, at("restored"), m)
		require.NoError(t, kv.Verify(t.Context(), at("restored"), io.Discard))
		if !killed {
			break
		}
	}
	require.Greater(t, unfinished, 2)
}
