package objstore

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func openTestDir(t *testing.T, name string) *dir {
	t.Helper()
	s, err := OpenDir(name)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s.(*dir)
}

// files returns the paths of all that is no directory below one, with slashes.
func files(t *testing.T, root string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			name, err = filepath.Rel(root, name)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	}))
	return names
}

func keysOf(t *testing.T, s Store) (keys []string) {
	t.Helper()
	for o, err := range s.List(t.Context(), "", "") {
		require.NoError(t, err)
		keys = append(keys, o.Key)
	}
	return keys
}

func TestPaths(t *testing.T) {
	for key, want := range map[string]string{
		"sst/0f3a-1_b=.sst": "sst/0f3a-1_b=.sst",
		"A/b C":             "%41/b%20%43",
		"con/nul.txt/com1":  "%63on/%6eul.txt/%63om1",
		"console/com/lpt10": "console/com/lpt10",
		".tmp/.a.b/..c":     "%2etmp/%2ea.b/%2e.c",
		"%41":               "%2541",
		"é:*?":              "%c3%a9%3a%2a%3f",
	} {
		require.Equal(t, want, pathOf(key))
	}
	for _, name := range []string{"", ".", ".tmp", "A", "%41x%", "%4", "%61", "%2E", "a b", "con", "a.", "%2f", "%00",
		"a%ff"} {
		segment, ok := segmentOf(name)
		require.False(t, ok, "%q stands for %q", name, segment)
	}
}

func TestDirIsMadeWithItsParents(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a", "b", "c")
	s := openTestDir(t, name)
	require.NoError(t, s.PutIfAbsent(t.Context(), "x/Y", []byte("1")))
	require.NoError(t, s.Put(t.Context(), "x/z", bytes.NewReader([]byte("1")), 1))
	require.Equal(t, []string{"x/%59", "x/z"}, files(t, name), "and no temporary files")

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o666))
	_, err := OpenDir(file)
	require.Error(t, err)
	_, err = OpenDir(filepath.Join(file, "below"))
	require.Error(t, err)
}

// TestDirListsObjectsAlone has files, directories and links around that are no objects.
func TestDirListsObjectsAlone(t *testing.T) {
	name := t.TempDir()
	s := openTestDir(t, name)
	require.NoError(t, s.PutIfAbsent(t.Context(), "sst/1", nil))
	require.NoError(t, s.makeDirs(tempDir))
	deep, less := strings.Repeat("d/", MaxKey/2), strings.Repeat("d/", MaxKey/2-2)
	require.NoError(t, os.MkdirAll(filepath.Join(name, filepath.FromSlash(deep)), 0o777))
	for _, foreign := range []string{".tmp/X", ".hidden", "README", "sst/a b", "sst/x.", "sst/%zz", "sst/" +
		strings.Repeat("x", MaxSegment+1), deep + "file", less + "too-long"} {
		require.NoError(t, os.WriteFile(filepath.Join(name, filepath.FromSlash(foreign)), nil, 0o666))
	}
	if runtime.GOOS != "windows" { // which lets few users make links
		require.NoError(t, os.Symlink("1", filepath.Join(name, "sst", "link")))
		require.NoError(t, os.Symlink("sst", filepath.Join(name, "dirlink")))
	}
	require.Equal(t, []string{"sst/1"}, keysOf(t, s))
}

// TestDirIsNotLeft has symbolic links in the directory that lead out of it.
func TestDirIsNotLeft(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("few users of Windows may make symbolic links")
	}
	name, outside := t.TempDir(), t.TempDir()
	s, ctx := openTestDir(t, name), t.Context()
	secret := filepath.Join(outside, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o666))
	require.NoError(t, os.Symlink(secret, filepath.Join(name, "file")))
	require.NoError(t, os.Symlink(outside, filepath.Join(name, "dir")))
	for _, key := range []string{"file", "dir/secret", "dir/new"} {
		_, err := s.GetRange(ctx, key, 0, make([]byte, 6))
		require.Error(t, err, "get %s", key)
		err = s.PutIfAbsent(ctx, key, []byte("changed"))
		require.Error(t, err, "create %s", key)
		require.NotErrorIs(t, err, ErrExists)
		_ = s.Delete(ctx, key)
	}
	require.Error(t, s.Put(ctx, "dir/secret", strings.NewReader("changed"), 7))
	require.NoError(t, s.Put(ctx, "file", strings.NewReader("changed"), 7), "it takes the link's place")
	require.Equal(t, []string{"secret"}, files(t, outside))
	data, err := os.ReadFile(secret)
	require.NoError(t, err)
	require.Equal(t, "secret", string(data))
	require.Equal(t, []string{"file"}, keysOf(t, s))
}

// TestDirRefusesObjectsAboveObjects: a and a/b cannot both be files. No call takes the one for the other.
func TestDirRefusesObjectsAboveObjects(t *testing.T) {
	s, ctx := openTestDir(t, t.TempDir()), t.Context()
	require.NoError(t, s.PutIfAbsent(ctx, "a/b", nil))
	require.NoError(t, s.PutIfAbsent(ctx, "c", nil))
	for _, key := range []string{"a", "c/d"} {
		for _, err := range []error{s.PutIfAbsent(ctx, key, nil), s.Put(ctx, key, strings.NewReader(""), 0)} {
			require.Error(t, err)
			require.NotErrorIs(t, err, ErrExists)
			require.NotErrorIs(t, err, ErrNotExist)
			require.NotErrorIs(t, err, ErrUnknown)
		}
		require.NoError(t, s.Delete(ctx, key))
		_, err := s.GetRange(ctx, key, 0, make([]byte, 1))
		require.ErrorIs(t, err, ErrNotExist)
	}
	require.Equal(t, []string{"a/b", "c"}, keysOf(t, s))
}

func TestDirRemovesStaleTemporaryFiles(t *testing.T) {
	name := t.TempDir()
	s := openTestDir(t, name)
	require.NoError(t, s.PutIfAbsent(t.Context(), "object", []byte("x")))
	temp := filepath.Join(name, tempDir)
	require.NoError(t, os.Link(filepath.Join(name, "object"), filepath.Join(temp, "LINKED"))) // died after its link
	require.NoError(t, os.WriteFile(filepath.Join(temp, "STALE"), nil, 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(temp, "FRESH"), nil, 0o666))
	old := time.Now().Add(-staleTemp - time.Minute)
	for _, file := range []string{"LINKED", "STALE"} {
		require.NoError(t, os.Chtimes(filepath.Join(temp, file), old, old))
	}
	other := openTestDir(t, name)
	require.Equal(t, []string{".tmp/FRESH", "object"}, files(t, name))
	require.Equal(t, []string{"object"}, keysOf(t, other))
}

// A lateEnd ends a context with its last bytes.
type lateEnd struct {
	*strings.Reader
	cancel context.CancelFunc
}

func (r lateEnd) ReadAt(p []byte, off int64) (int, error) {
	r.cancel()
	return r.Reader.ReadAt(p, off)
}

func TestDirPublishesNothingAfterTheContext(t *testing.T) {
	s := openTestDir(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Put(ctx, "object", lateEnd{strings.NewReader("x"), cancel}, 1)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, ErrUnknown)
	require.Empty(t, keysOf(t, s))
}

// TestDirStalledWriter publishes nothing after its temporary file was removed as stale.
func TestDirStalledWriter(t *testing.T) {
	s, ctx := openTestDir(t, t.TempDir()), t.Context()
	stalled := func(from, to string) error {
		s.removeStale(time.Now().Add(time.Hour))
		return s.link(from, to)
	}
	err := s.write(ctx, PutIfAbsent, "object", strings.NewReader("x"), 1, stalled)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NotErrorIs(t, err, ErrNotExist)
	require.NotErrorIs(t, err, ErrUnknown)
	require.Empty(t, keysOf(t, s))
}

// TestDirRepeatedLink: a file system that repeats a link whose reply was lost finds its own object.
func TestDirRepeatedLink(t *testing.T) {
	s, ctx := openTestDir(t, t.TempDir()), t.Context()
	twice := func(from, to string) error { return errors.Join(s.link(from, to), s.link(from, to)) }
	require.NoError(t, s.write(ctx, PutIfAbsent, "object", strings.NewReader("x"), 1, twice))
	require.ErrorIs(t, s.write(ctx, PutIfAbsent, "object", strings.NewReader("y"), 1, twice), ErrExists)
}

// TestDirSyncsNames of all directories that it makes, of objects, and of those that others have made; a write whose
// name may not be durable is of unknown outcome.
func TestDirSyncsNames(t *testing.T) {
	s, ctx := openTestDir(t, t.TempDir()), t.Context()
	var synced []string
	var failure error
	s.sync = func(name string) error {
		synced = append(synced, name)
		return failure
	}
	put := func() error { return s.Put(ctx, "a/b/put", strings.NewReader("x"), 1) }
	create := func() error { return s.PutIfAbsent(ctx, "a/b/created", nil) }
	remove := func() error { return s.Delete(ctx, "a/b/put") }
	for _, c := range []struct {
		call func() error
		want error
		dirs []string
	}{
		{create, nil, []string{".", "a", ".", "a/b"}}, // for a, a/b, .tmp and the object
		{create, ErrExists, []string{"a/b"}},
		{put, nil, []string{"a/b"}},
		{remove, nil, []string{"a/b"}},
		{remove, nil, nil},
	} {
		synced = nil
		require.ErrorIs(t, c.call(), c.want)
		require.Equal(t, c.dirs, synced)
	}
	require.NoError(t, put())
	failure = errors.New("I/O error")
	for _, call := range []func() error{create, put, remove} {
		err := call()
		require.ErrorIs(t, err, failure)
		require.ErrorIs(t, err, ErrUnknown)
		require.NotErrorIs(t, err, ErrExists, "the object that is there may not stay")
	}
	err := s.PutIfAbsent(ctx, "new/object", nil)
	require.ErrorIs(t, err, failure)
	require.NotErrorIs(t, err, ErrUnknown, "it has not begun")
	failure = nil
	require.NoError(t, s.PutIfAbsent(ctx, "new/object", nil))
}

// FuzzPaths goes from keys to paths, which stay in the directory, and back.
func FuzzPaths(f *testing.F) {
	for _, key := range []string{"sst/0001.sst", "../x", "a/../../b", "/etc/passwd", ".tmp/x", "CON", "c:\\x", "a/b/",
		"%2e%2e/x", "é", "com1.txt/lpt9", "a\x00b", "..."} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if CheckKey(key) != nil {
			return
		}
		name := pathOf(key)
		require.True(t, filepath.IsLocal(filepath.FromSlash(name)), name)
		require.NotContains(t, name, "\\")
		var back []string
		for part := range strings.SplitSeq(name, "/") {
			require.NotEmpty(t, part)
			require.NotEqual(t, '.', rune(part[0]), "it would be hidden: %s", name)
			require.LessOrEqual(t, len(part), 255)
			require.Equal(t, strings.ToLower(part), part, "file systems fold case")
			segment, ok := segmentOf(part)
			require.True(t, ok, part)
			back = append(back, segment)
		}
		require.Equal(t, key, strings.Join(back, "/"))
	})
}

// FuzzNames takes files of any name for the objects that have that name, or for none.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"a", "%41", "%2e", "%2f", "con", "%63on", ".tmp", "A", "%C3%A9", "%c3%a9", "%", "a%",
		"..", "%2e.", "a/b", "a%2fb"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if segment, ok := segmentOf(name); ok {
			require.NoError(t, CheckKey(segment))
			require.NotContains(t, segment, "/")
			require.Equal(t, name, pathOf(segment))
		}
	})
}
