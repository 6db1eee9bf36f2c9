package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/cli/clitest"
	"github.com/siftkv/siftkv/internal/scale"
)

// flip changes a byte of a file, whose time stays.
func flip(t *testing.T, path string, at int64) {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	b := make([]byte, 1)
	_, err = f.ReadAt(b, at)
	require.NoError(t, err)
	b[0] ^= 0x55
	_, err = f.WriteAt(b, at)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, os.Chtimes(path, time.Time{}, info.ModTime()))
}

// A source with a byte that is not what was written is either refused or, where the byte means nothing, imported as it
// was: never is a key lost without a word. (bbolt has no checksums of data: there the values may differ.)
func TestDamagedSources(t *testing.T) {
	c := testContent(10, 20_000)
	flips := int64(scale.Count(3, 12))
	for _, kind := range kinds {
		source := newStore(t, kind, c)
		_, root := Source(source).cut()
		refused, flips := 0, flips
		if kind == "bbolt" { // many of whose pages are free
			flips = int64(scale.Count(30, 60))
		}
		for _, name := range data(t, root) {
			info, err := os.Stat(name)
			require.NoError(t, err)
			for i := range min(flips, info.Size()) {
				at := info.Size() * (2*i + 1) / (2 * min(flips, info.Size()))
				if kind == "bbolt" {
					at = at&^4095 + 8 // flags, and number of elements, of a page
				}
				flip(t, name, at)
				dest := filepath.Join(t.TempDir(), "dest")
				r := siftimport(t, source, dest)
				require.NotContains(t, r.Stderr, "goroutine", "%s at %d", name, at)
				switch {
				case r.Status != 0:
					refused++
					require.Contains(t, []int{1, 4}, r.Status, r.Stderr)
					require.NoDirExists(t, dest, r.Stderr)
					require.Equal(t, 1, strings.Count(r.Stderr, "siftimport:"), r.Stderr)
				case kind != "bbolt":
					requireContent(t, expected(kind, c), dest)
				}
				flip(t, name, at)
			}
		}
		require.Positive(t, refused, kind)
	}
}

// data returns the files of a store that are worth damaging.
func data(t *testing.T, root string) (names []string) {
	t.Helper()
	walk(t, root, func(path string) {
		base := filepath.Base(path)
		if info, err := os.Stat(path); err == nil && info.Size() > 0 && info.Size() < 100<<20 &&
			!slices.Contains([]string{"LOCK", "LOG", "DISCARD"}, base) {
			names = append(names, path)
		}
	})
	return names
}

// A store that is open elsewhere is refused, and stays open there.
func TestSourcesInUse(t *testing.T) {
	c := testContent(11, 1000)
	for _, kind := range kinds {
		source := newStore(t, kind, c)
		_, path := Source(source).cut()
		owner := create(t, kind, path) // the child is another process
		dest := filepath.Join(t.TempDir(), "dest")
		r := siftimport(t, source, dest)
		require.Equal(t, 1, r.Status, r.Stderr)
		require.Contains(t, r.Stderr, "is open in another process", kind)
		require.NoDirExists(t, dest)
		require.NoDirExists(t, dest+".import")
		require.NoError(t, owner.put([]byte("\xff\xffk"), []byte("v")))
		require.NoError(t, owner.close())
		works(t, source, dest)
		more := &content{append(slices.Clip(c.keys), []byte("\xff\xffk")), append(slices.Clip(c.values), []byte("v"))}
		requireContent(t, expected(kind, more), dest)
	}
}

// Stores without keys give a store without keys.
func TestEmptySources(t *testing.T) {
	for _, kind := range kinds {
		source := newStore(t, kind, &content{})
		dest := filepath.Join(t.TempDir(), "dest")
		r := works(t, source, dest)
		require.Contains(t, r.Stdout, "0 keys", kind)
		requireContent(t, &content{}, dest)
	}
}

// What is no store of the kind is said to be none.
func TestSourcesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("no store\n", 5000)), 0o600))
	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	stores := map[string]string{"text": text, "dir": dir, "empty": empty, "missing": filepath.Join(dir, "missing")}
	for _, kind := range kinds {
		_, stores[kind] = Source(newStore(t, kind, testContent(12, 10))).cut()
	}
	for _, kind := range kinds {
		for what, path := range stores {
			if what == kind {
				continue
			}
			before := files(t, ":"+dir)
			dest := filepath.Join(t.TempDir(), "dest")
			r := siftimport(t, kind+":"+path, dest)
			require.Equal(t, 1, r.Status, "%s as %s: %s", what, kind, r.Stderr)
			require.Contains(t, r.Stderr, path, "%s as %s", what, kind)
			require.NotContains(t, r.Stderr, "damaged", "%s as %s", what, kind)
			require.NoDirExists(t, dest)
			require.NoDirExists(t, dest+".import")
			require.Equal(t, before, files(t, ":"+dir))
		}
	}
	for _, args := range [][]string{{"pebble", "x"}, {"rocksdb:x", "x"}, {"pebble:", "x"}, {"pebble:x"},
		{"pebble:x", "y", "--bucket", "b"}, {"bbolt:x", "y", "--bucket", "a//b"}, {"pebble:x", "y", "--filter", "no"},
		{"pebble:x", "y", "--block-size", "1"}, {"pebble:x", "s3://bucket"},
		{"leveldb:x", "y", "--badger-value-dir", "z"},
		{"pebble:x", "y", "--file-size", "0"}, {"pebble:x", "y", "--threads", "-1"}} {
		require.Equal(t, 2, siftimport(t, args...).Status, args)
	}
}

// A disk that is full, and a destination that may not be written to, are errors that say where, and another run goes
// on.
func TestDestinationsThatCannotBeWritten(t *testing.T) {
	c := testContent(13, 60_000)
	source := newStore(t, "pebble", c)
	dest := filepath.Join(t.TempDir(), "dest")
	for size := 100; size < 1_000_000; size *= 10 {
		r := (&clitest.Process{Args: []string{source, dest, "--file-size", "1"}, Full: true, FileSize: size}).Run(t)
		require.Equal(t, 1, r.Status, r.Stderr)
		require.Contains(t, r.Stderr, dest+".import")
		require.Contains(t, r.Stderr, "file too large")
		require.NoDirExists(t, dest)
	}
	works(t, source, dest, "--file-size", "1")
	requireContent(t, c, dest)

	public := clitest.PublicDir(t)
	_, path := Source(source).cut()
	for dir := path; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // on purpose
	}
	r := (&clitest.Process{Args: []string{source, filepath.Join(public, "dest")}, Nobody: true}).Run(t)
	require.Equal(t, 1, r.Status)
	require.Contains(t, r.Stderr, "dest.import: permission denied")
}

// A source that may be read and not written to is imported.
func TestSourcesThatMayNotBeWritten(t *testing.T) {
	c := testContent(14, 1000)
	for _, kind := range kinds {
		root := clitest.PublicDir(t)
		source := kind + ":" + filepath.Join(root, kind)
		c.write(t, create(t, kind, filepath.Join(root, kind)))
		require.NoError(t, filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
			if err != nil || path == root {
				return err
			}
			mode := os.FileMode(0o444)
			if e.IsDir() {
				mode = 0o555
			}
			return os.Chmod(path, mode)
		}))
		to := clitest.PublicDir(t)
		require.NoError(t, os.Chmod(to, 0o777)) //nolint:gosec // on purpose
		r := (&clitest.Process{Args: []string{source, filepath.Join(to, "dest")}, Nobody: true}).Run(t)
		require.Zero(t, r.Status, r.Stderr)
		requireContent(t, expected(kind, c), filepath.Join(to, "dest"))
		_, path := Source(source).cut()
		require.NoError(t, os.Chmod(path, 0o755)) //nolint:gosec // so that it can be removed
	}
}

// Pebble is told apart by what it says of its order of keys.
func TestPebbleStoresInAnotherOrder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pebble")
	comparer := *pebble.DefaultComparer
	comparer.Name = "backward"
	db, err := pebble.Open(dir, &pebble.Options{Comparer: &comparer, Logger: quiet{},
		FormatMajorVersion: pebble.FormatNewest})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	r := siftimport(t, "pebble:"+dir, filepath.Join(t.TempDir(), "dest"))
	require.Equal(t, 1, r.Status)
	require.Contains(t, r.Stderr, `"backward"`)
}
