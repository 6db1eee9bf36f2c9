package kv

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
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
)

// killApartOptions are those of the store whose backups and restores are killed: values of 300 bytes and more lie
// apart, in many blob files.
func killApartOptions() *Options {
	return &Options{SeparateFrom: 300, harness: harness.Harness{BlobSize: 4 << 10}, MemtableSize: 64 << 10,
		Compression: sstable.NoCompression}
}

// backUpUntilKilled writes to the store in dir and backs it up, into a file that is as long as what it was given,
// with a step before each write of either.
func backUpUntilKilled(dir string) error {
	db, err := Open(filepath.Join(dir, "store"), killApartOptions())
	if err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(dir, "broken"))
	if err != nil {
		return err
	}
	for i := range 50 {
		if err := db.Set(fmt.Appendf(nil, "child%02d", i), bytes.Repeat([]byte{'c'}, 400), Sync); err != nil {
			return err
		}
		step()
	}
	_, err = db.Backup(context.Background(), writerFunc(func(b []byte) (int, error) {
		step()
		return out.Write(b)
	}), BackupMark{})
	return errors.Join(err, out.Close(), db.Close())
}

// restoreDirUntilKilled restores the file stream into the directory restored, with a step before each read.
func restoreDirUntilKilled(dir string) error {
	f, err := os.Open(filepath.Join(dir, "stream"))
	if err != nil {
		return err
	}
	return Restore(context.Background(), readerFunc(func(p []byte) (int, error) {
		step()
		return f.Read(p)
	}), filepath.Join(dir, "restored"), nil)
}

// step says that a child goes on, and waits until it is told to.
func step() {
	fmt.Print(".")
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// killAfter runs a child until it has come to so many steps, and reports whether it was killed there.
func killAfter(t *testing.T, mode, dir string, steps int) bool {
	t.Helper()
	cmd := storetest.Child(t, mode, dir, 0)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	killed := true
	for n := range steps {
		if _, err := out.Read(make([]byte, 1)); err != nil {
			killed = false // it has ended
			break
		}
		if n < steps-1 {
			_, _ = in.Write([]byte{'.'})
		}
	}
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	return killed
}

// A process that backs a store up, or restores one, is killed anywhere: the store is whole, what there is of a stream
// becomes no store, and the restore ends with the whole stream.
func TestBackupAndRestoreAreKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	db := openDir(t, at("store"), killApartOptions())
	m := storetest.Model{}
	for i := range 200 {
		k := fmt.Sprintf("key%03d", i)
		m[k] = string(bytes.Repeat([]byte{byte('a' + i%26)}, i*7))
		require.NoError(t, db.Set([]byte(k), []byte(m[k]), NoSync))
	}
	require.NoError(t, db.Close())
	broken := 0
	for lines := 20; killAfter(t, "back up", dir, lines); lines += 37 {
		db := openDir(t, at("store"), killApartOptions())
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
		requireContents(t, m, db)
		requireBlobs(t, db)
		stream, _ := backUp(t, db, BackupMark{})
		require.NoError(t, os.WriteFile(at("stream"), stream, 0o600))
		require.NoError(t, db.Close())
		part, err := os.ReadFile(at("broken"))
		require.NoError(t, err)
		if _, err := VerifyBackup(bytes.NewReader(part)); err != nil {
			broken++
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			disk := vfs.NewMem()
			require.Error(t, Restore(t.Context(), bytes.NewReader(part), "dir",
				&Options{harness: harness.Harness{FS: disk}}))
			_, err = Open("dir", &Options{harness: harness.Harness{FS: disk}, ReadOnly: true})
			require.Error(t, err)
		}
	}
	require.Greater(t, broken, 2)
	stream, err := os.ReadFile(at("stream"))
	require.NoError(t, err)
	unfinished := 0
	for lines := 1; ; lines += 31 {
		require.NoError(t, os.RemoveAll(at("restored")))
		killed := killAfter(t, "restore into a directory", dir, lines)
		view, err := Open(at("restored"), &Options{ReadOnly: true})
		switch {
		case err == nil:
			require.NoError(t, view.Close())
		case errors.Is(err, ErrRestoreUnfinished):
			unfinished++
		default:
			require.ErrorIs(t, err, ErrNotExist)
		}
		require.NoError(t, Restore(t.Context(), bytes.NewReader(stream), at("restored"), nil))
		requireRestored(t, vfs.OS, at("restored"), m)
		require.NoError(t, Verify(t.Context(), at("restored"), io.Discard))
		if !killed {
			break
		}
	}
	require.Greater(t, unfinished, 2)
}
