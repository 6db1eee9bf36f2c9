package storecmd

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/cli/clitest"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// separatedStore makes a store of 100 separated values of 5,000 bytes in three blob files, too few for Compact to join
// them, and of 100 short ones.
func separatedStore(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	db, err := kv.Open(dir, &kv.Options{SeparateFrom: 1000, Compression: sstable.NoCompression,
		L0CompactionThreshold: 100})
	require.NoError(t, err)
	for i := range 100 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "long%03d", i), bytes.Repeat([]byte{byte('a' + i%26)}, 5000),
			kv.NoSync))
		require.NoError(t, db.Set(fmt.Appendf(nil, "short%03d", i), []byte("short"), kv.NoSync))
		if i%34 == 33 || i == 99 {
			require.NoError(t, db.Flush(t.Context()))
		}
	}
	require.NoError(t, db.Close())
	require.Len(t, blobFiles(t, dir), 3)
	return dir
}

func blobFiles(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.blob"))
	require.NoError(t, err)
	return names
}

func TestStoresWithBlobFilesAreCopied(t *testing.T) {
	t.Parallel()
	dir := separatedStore(t)
	at := func(name string) string { return filepath.Join(t.TempDir(), name) }
	want := ok(t, "scan", dir)
	same := func(copied string) {
		t.Helper()
		require.Equal(t, want, ok(t, "scan", copied))
		ok(t, "verify", copied)
		require.Len(t, blobFiles(t, copied), 3)
	}
	copied := at("copy")
	said := ok(t, "copy", dir, copied)
	require.Contains(t, said, ": 6 files, 50")
	require.Contains(t, said, "; verified: each file was read back, and has the XXH64 of the source's\n")
	same(copied)

	checkpoint := at("checkpoint")
	ok(t, "checkpoint", dir, checkpoint)
	same(checkpoint)

	full, more, restored := at("full"), at("more"), at("restored")
	require.Contains(t, ok(t, "backup", dir, full), "; 6 files, sequence number")
	ok(t, "backup", "--verify", full)
	ok(t, "restore", restored, full, "--verify")
	same(restored)
	require.Contains(t, ok(t, "compact", dir), "; before: 6 files, 5")
	described := clitest.RequireJSON(t, ok(t, "backup", dir, more, "--since", full+".mark", "--json"))[0]
	require.Equal(t, "4", fmt.Sprint(described["files"]))
	size, err := os.Stat(more)
	require.NoError(t, err)
	require.Less(t, size.Size(), int64(20_000), "values lie in blob files, which the full backup has")
	require.Contains(t, ok(t, "restore", restored, full, more, "--verify"), "verified")
	same(restored)
}

// A copy that is read back and is not what was sent is damage.
func TestACopyOfBlobFilesIsReadBack(t *testing.T) {
	t.Parallel()
	dir, to := separatedStore(t), filepath.Join(t.TempDir(), "copy")
	ok(t, "copy", dir, to)
	backup := filepath.Join(t.TempDir(), "backup")
	ok(t, "backup", dir, backup)
	sent, err := contentsOf(bytes.NewReader(read(t, backup)))
	require.NoError(t, err)
	p := &program{stderr: io.Discard}
	compare := func() error { return p.compare(t.Context(), sent, Location(to)) }
	require.NoError(t, compare())
	for _, name := range blobFiles(t, to) {
		whole := read(t, name)
		bad := bytes.Clone(whole)
		bad[len(bad)/3] ^= 1
		require.NoError(t, os.WriteFile(name, bad, 0o600))
		require.ErrorIs(t, compare(), errDamage)
		require.ErrorContains(t, compare(), filepath.Base(name))
		require.NoError(t, os.WriteFile(name, whole, 0o600))
	}
	sent.edit.AddedBlobs[1].Records++
	require.ErrorContains(t, compare(), "otherwise than its source")
	sent.edit.AddedBlobs = sent.edit.AddedBlobs[1:]
	require.ErrorContains(t, compare(), "3 blob files, and its source has 3 and 2")
}

func TestADamagedBlobFileEndsABackup(t *testing.T) {
	t.Parallel()
	dir := separatedStore(t)
	name := blobFiles(t, dir)[1]
	bad := read(t, name)
	bad[len(bad)/2] ^= 1
	require.NoError(t, os.WriteFile(name, bad, 0o600))
	for _, args := range [][]string{
		{"backup", dir, filepath.Join(t.TempDir(), "out")},
		{"copy", dir, filepath.Join(t.TempDir(), "to")},
	} {
		status, _, stderr := siftkv(t, args...)
		require.Equal(t, statusDamage, status, stderr)
		require.Contains(t, stderr, filepath.Base(name))
	}
}

func TestExplainNamesTheBlobFile(t *testing.T) {
	t.Parallel()
	dir := separatedStore(t)
	said := ok(t, "explain", dir, "long030")
	require.Contains(t, said, "the value is in blob file ")
	require.Contains(t, said, "bytes to read for a value of 5000\n")
	e := clitest.RequireJSON(t, ok(t, "explain", dir, "long030", "--json"))[0]
	blob, isObject := e["blob"].(map[string]any)
	require.True(t, isObject)
	require.Equal(t, "5000", fmt.Sprint(blob["bytes"]))
	require.FileExists(t, filepath.Join(dir, fmt.Sprint(blob["file"])))
	require.NotContains(t, ok(t, "explain", dir, "short030", "--json"), `"blob"`)
}

// Golden: what is printed of a store with blob files, and of a damaged blob file.
func TestGoldenOutputsOfBlobFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../kv/testdata/store-apart")))
	files := blobFiles(t, dir)
	broken := filepath.Join(t.TempDir(), filepath.Base(files[0]))
	require.NoError(t, os.WriteFile(broken, read(t, files[0]), 0o600))
	flip(t, broken, 700)
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	manifests, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	require.NoError(t, err)
	names := strings.NewReplacer("DIR", dir, "BLOB", files[0], "BROKEN", broken, "TABLE", tables[0],
		"MANIFEST", manifests[0])
	var all strings.Builder
	for _, line := range []string{
		"stats DIR", "stats DIR --json", "verify DIR", "explain DIR apart", "explain DIR apart --json",
		"explain DIR operands", "dump-sstable TABLE", "dump-sstable TABLE --json",
		"dump-blob BLOB", "dump-blob BLOB --json", "dump-blob BLOB --values", "dump-blob BLOB --values --json",
		"dump-blob BROKEN", "dump-blob BROKEN --json", "dump-manifest MANIFEST", "dump-manifest MANIFEST --json",
		"dump-blob TABLE",
	} {
		status, stdout, stderr := siftkv(t, strings.Fields(names.Replace(line))...)
		text := strings.NewReplacer(dir, "DIR", filepath.Dir(broken), "ELSEWHERE").Replace(stdout + stderr)
		for _, long := range []string{"first ", "second ", "under ", "expiring ", "0", "log "} { // of 100
			text = strings.ReplaceAll(text, strings.Repeat(long, 99), long+"... ")
		}
		fmt.Fprintf(&all, "$ siftkv %s\n%s[%d]\n\n", line, text, status)
	}
	golden.File(t, "testdata/outputs-separated.txt", all.String())
}

// Of a damaged blob file everything is printed but the values that are damaged, each of which is named.
func TestDumpsOfDamagedBlobFiles(t *testing.T) {
	t.Parallel()
	dir := separatedStore(t)
	name := blobFiles(t, dir)[0]
	whole := read(t, name)
	lines := strings.Count(ok(t, "dump-blob", name), "\n")
	require.Equal(t, 39, lines, "34 values, and five fields of the footer")
	for at := 40; at < len(whole)-60; at += 9_973 {
		bad := bytes.Clone(whole)
		bad[at] ^= 2
		require.NoError(t, os.WriteFile(name, bad, 0o600))
		status, stdout, stderr := siftkv(t, "dump-blob", name)
		require.Equal(t, statusDamage, status, stderr)
		require.Equal(t, lines-1, strings.Count(stdout, "\n")-strings.Count(stdout, "# damage: "))
		require.Contains(t, stdout, "# damage: ")
		require.Contains(t, stdout, filepath.Base(name))
	}
	require.NoError(t, os.WriteFile(name, whole[:len(whole)-1], 0o600))
	status, _, stderr := siftkv(t, "dump-blob", name)
	require.Equal(t, statusDamage, status)
	require.Contains(t, stderr, "footer")
}

// A file may be longer than what Set takes: it is stored, and printed, without being in memory.
func TestLongFilesArePut(t *testing.T) {
	t.Parallel()
	dir, file := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "long")
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(kv.MaxValueSize+1))
	require.NoError(t, f.Close())
	require.JSONEq(t, fmt.Sprintf(`{"bytes":%d,"put":"k"}`, kv.MaxValueSize+1),
		ok(t, "put", dir, "k", "--from", file, "--create", "--json"))
	db, err := kv.Open(dir, nil)
	require.NoError(t, err)
	size, err := db.GetSize([]byte("k"))
	require.NoError(t, err)
	require.EqualValues(t, kv.MaxValueSize+1, size)
	require.NoError(t, db.Close())

	require.NoError(t, os.Truncate(file, kv.MaxReaderSize+1))
	status, _, stderr := siftkv(t, "put", dir, "k", "--from", file)
	require.Equal(t, statusUsage, status)
	require.Contains(t, stderr, strconv.Itoa(kv.MaxReaderSize+1))

	dir = separatedStore(t)
	require.Equal(t, strings.Repeat("a", 5000), ok(t, "get", dir, "long000", "--raw"))
	status, _, _ = siftkv(t, "get", dir, "none", "--raw")
	require.Equal(t, 3, status)
}
