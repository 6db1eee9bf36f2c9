package storecmd

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/cli/clitest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/kv"
)

// Commands that read have what the writer has written, in tables and in its log, and leave it alone.
func TestReadsBesideAWriter(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	at := func(name string) string { return filepath.Join(top, name) }
	dir := at("store")
	db, err := kv.Open(dir, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	set := func(key, value string) { require.NoError(t, db.Set([]byte(key), []byte(value), nil)) }
	set("apple", "red")
	require.NoError(t, db.Flush(t.Context()))
	set("pear", "green")

	require.Equal(t, "green\n", ok(t, "get", dir, "pear"))
	require.Equal(t, "apple\tred\npear\tgreen\n", ok(t, "scan", dir))
	require.Contains(t, ok(t, "explain", dir, "apple"), "found")
	ok(t, "checkpoint", dir, at("checkpoint"))
	require.NoError(t, os.Mkdir(at("other"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(at("other"), "file"), nil, 0o600))
	for _, taken := range []string{"checkpoint", "other"} {
		status, _, stderr := siftkv(t, "checkpoint", dir, at(taken))
		require.Equal(t, statusError, status, taken)
		require.Contains(t, stderr, at(taken))
	}
	ok(t, "backup", dir, at("1.bak"))
	status, _, stderr := siftkv(t, "backup", dir, at("2.bak"), "--since", at("1.bak.mark"))
	require.Equal(t, statusError, status)
	require.Contains(t, stderr, "the writer has not flushed")
	require.NoError(t, db.Flush(t.Context()))
	set("plum", "blue")
	ok(t, "backup", dir, at("2.bak"), "--since", at("1.bak.mark"))
	ok(t, "restore", at("restored"), at("1.bak"), at("2.bak"))

	require.Equal(t, "apple\tred\npear\tgreen\n", ok(t, "scan", at("checkpoint")))
	require.Equal(t, "apple\tred\npear\tgreen\nplum\tblue\n", ok(t, "scan", at("restored")))
	for _, name := range []string{"checkpoint", "restored"} {
		ok(t, "verify", at(name))
		ok(t, "put", at(name), "quince", "yellow")
	}
	set("quince", "gold")
	readers, err := filepath.Glob(filepath.Join(dir, "READER-*"))
	require.NoError(t, err)
	require.Empty(t, readers, "registrations have ended")
}

// An incremental backup of a store without new writes succeeds.
func TestABackupOfAnUnchangedStoreFollowsTheLast(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir, first, second := filepath.Join(top, "store"), filepath.Join(top, "1.bak"), filepath.Join(top, "2.bak")
	ok(t, "put", dir, "apple", "red", "--create")
	ok(t, "backup", dir, first)
	ok(t, "backup", dir, second, "--since", first+".mark")
	ok(t, "restore", filepath.Join(top, "restored"), first, second)
}

// A directory of another user, or on a file system that is read-only, is read all the same, and stays as it is.
func TestReadsOfADirectoryThatCannotBeWrittenTo(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("wants a directory of another user")
	}
	top := clitest.PublicDir(t)
	dir, out := filepath.Join(top, "store"), filepath.Join(top, "out")
	require.NoError(t, os.CopyFS(dir, os.DirFS(goldenStore(t))))
	ok(t, "put", dir, "zzz", "in the log")
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o644)
	}))
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, os.Mkdir(out, 0o700))
	require.NoError(t, os.Chown(out, clitest.NobodyID, clitest.NobodyID))
	before := filesUnder(t, dir)
	for _, args := range [][]string{
		{"get", dir, "zzz"}, {"scan", dir, "--count"}, {"explain", dir, "zzz"}, {"stats", dir}, {"verify", dir},
		{"backup", dir, filepath.Join(out, "bak")}, {"checkpoint", dir, filepath.Join(out, "checkpoint")},
		{"copy", dir, filepath.Join(out, "copy")},
	} {
		r := (&clitest.Process{Args: args, Nobody: true}).Run(t)
		require.Zero(t, r.Status, "%q: %s", args, r.Stderr)
	}
	require.Equal(t, before, filesUnder(t, dir))
	all := ok(t, "scan", dir)
	ok(t, "restore", filepath.Join(top, "restored"), filepath.Join(out, "bak"))
	for _, copied := range []string{"restored", "out/checkpoint", "out/copy"} {
		require.Equal(t, all, ok(t, "scan", filepath.Join(top, copied)), copied)
	}
}

// Stats and verify see a whole store while a program writes, flushes, compacts and removes blob files, and still
// find what is damaged.
func TestStatsAndVerifyBesideAWriter(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	db, err := kv.Open(dir, &kv.Options{MemtableSize: 64 << 10, SeparateFrom: 1 << 10, SeparateAtCommit: true,
		L0CompactionThreshold: 2, TargetFileSize: 32 << 10})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	stop := make(chan struct{})
	var writers sync.WaitGroup
	write := func(n, i int) {
		key := []byte(fmt.Sprintf("%d-%03d", n, i%200))
		value := make([]byte, []int{10, 300, 3000}[i%3])
		require.NoError(t, db.Set(key, value, []*kv.WriteOptions{kv.NoSync, kv.Async}[i%2]))
	}
	for n := range 2 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				write(n, i)
				switch {
				case i%500 == 499:
					require.NoError(t, db.Compact(t.Context(), nil, nil))
				case i%100 == 99:
					require.NoError(t, db.Flush(t.Context()))
				}
			}
		})
	}
	end := sync.OnceFunc(func() { close(stop); writers.Wait() })
	defer end()
	gone := func() bool { // blob files have come, and gone
		b := db.Metrics().Blobs
		return b.Written > uint64(b.Bytes)
	}
	for n := 0; n < scale.Count(10, 200) || !gone(); n++ {
		require.Less(t, n, 10_000)
		stdout := ok(t, "verify", dir)
		require.NotContains(t, stdout, "breaks off")
		require.NotContains(t, stdout, "does not use any more")
		require.NotContains(t, ok(t, "stats", dir), "damage")
	}
	require.Contains(t, ok(t, "verify", dir), "a program writes to the store")
	end()
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Compact(t.Context(), nil, nil))

	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	data, err := os.ReadFile(tables[len(tables)-1])
	require.NoError(t, err)
	data[10] ^= 1
	require.NoError(t, os.WriteFile(tables[len(tables)-1], data, 0o600))
	status, stdout, _ := siftkv(t, "verify", dir)
	require.Equal(t, statusDamage, status)
	require.Contains(t, stdout, filepath.Base(tables[len(tables)-1])+" at offset")
	require.NoError(t, os.Remove(tables[len(tables)-1]))
	require.Contains(t, ok(t, "stats", dir), "is missing")
	readers, err := filepath.Glob(filepath.Join(dir, "READER-*"))
	require.NoError(t, err)
	require.Empty(t, readers, "registrations have ended")
}
