package diskcache

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/vfs"
)

// A hookFS asks before each call whether it may be performed. A write that may not leaves half of its bytes.
type hookFS struct {
	vfs.FS
	before func(op string) error
}

func (h *hookFS) Create(name string) (vfs.WriteFile, error) {
	if err := h.before("create"); err != nil {
		return nil, err
	}
	f, err := h.FS.Create(name)
	return &hookFile{f, h}, err
}

func (h *hookFS) Open(name string) (vfs.ReadFile, error) {
	if err := h.before("open"); err != nil {
		return nil, err
	}
	f, err := h.FS.Open(name)
	return &hookReadFile{f, h}, err
}

func (h *hookFS) Remove(name string) error {
	if err := h.before("remove"); err != nil {
		return err
	}
	return h.FS.Remove(name)
}

func (h *hookFS) List(dir string) ([]string, error) {
	if err := h.before("list"); err != nil {
		return nil, err
	}
	return h.FS.List(dir)
}

func (h *hookFS) Stat(name string) (int64, error) {
	if err := h.before("stat"); err != nil {
		return 0, err
	}
	return h.FS.Stat(name)
}

type hookFile struct {
	vfs.WriteFile
	h *hookFS
}

func (f *hookFile) Write(p []byte) (int, error) {
	if err := f.h.before("write"); err != nil {
		n, _ := f.WriteFile.Write(p[:len(p)/2])
		return n, err
	}
	return f.WriteFile.Write(p)
}

type hookReadFile struct {
	vfs.ReadFile
	h *hookFS
}

func (f *hookReadFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.h.before("read"); err != nil {
		return 0, err
	}
	return f.ReadFile.ReadAt(p, off)
}

// use reads all pages of all objects, some of them twice.
func (o *origin) use(c *Cache) {
	o.t.Helper()
	for i := range len(o.objects) {
		name := fmt.Sprint("object", i)
		for off := 0; off < len(o.objects[name]); off += testPage {
			o.read(c, name, off, min(100, len(o.objects[name])-off))
			c.Flush()
			o.read(c, "object0", 0, 100)
			c.Flush()
		}
	}
}

// From any one call on, the file system fails. All reads are right, then and after a restart, with what a power cut
// leaves: the last file has zeros where it was not written.
func TestAnyCallMayFail(t *testing.T) {
	failures := []error{syscall.ENOSPC, fs.ErrPermission, syscall.EIO}
	calls, last := int64(0), false
	for first := int64(0); !last; first++ {
		failure := failures[first%3]
		mem, o := vfs.NewMem(), newOrigin(t, 20*testPage, 5000, 15*testPage)
		var made atomic.Int64
		fsys := &hookFS{FS: mem, before: func(string) error {
			if made.Add(1) > first {
				return failure
			}
			return nil
		}}
		synctest.Test(t, func(t *testing.T) {
			c := openCache(t, fsys, Options{Capacity: 32 * testPage})
			o.t = t
			o.use(c)
			require.NoError(t, c.Close())
			require.Equal(t, made.Load() > first, c.Metrics().Failed > 0)
			require.Zero(t, c.Metrics().Damaged)
		})
		calls = made.Load()
		last = calls <= first
		o.t = t
		if first/3%2 == 0 {
			zeroEnds(t, mem)
		}
		c := openCache(t, mem, Options{Capacity: 32 * testPage})
		if first > 50 && first/3%2 == 1 {
			require.Positive(t, c.Metrics().Pages, "of what was written")
		}
		o.use(c)
		require.Zero(t, c.Metrics().Failed)
		require.NoError(t, c.Close())
	}
	require.Greater(t, calls, int64(100))
}

// zeroEnds makes the second half of every file zeros.
func zeroEnds(t *testing.T, fsys vfs.FS) {
	for _, name := range segmentsOf(t, fsys) {
		rewrite(t, fsys, name, func(b []byte) []byte { clear(b[len(b)/2:]); return b })
	}
}

func segmentsOf(t *testing.T, fsys vfs.FS) (names []string) {
	all, err := fsys.List("cache")
	require.NoError(t, err)
	for _, name := range all {
		if _, ok := segmentNumber(name); ok {
			names = append(names, filepath.Join("cache", name))
		}
	}
	return names
}

func rewrite(t *testing.T, fsys vfs.FS, name string, change func(b []byte) []byte) {
	t.Helper()
	b := change(contents(t, fsys, name))
	f, err := fsys.Create(name)
	require.NoError(t, err)
	_, err = f.Write(b)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func contents(t *testing.T, fsys vfs.FS, name string) []byte {
	t.Helper()
	f, err := fsys.Open(name)
	require.NoError(t, err)
	size, err := f.Size()
	require.NoError(t, err)
	b := make([]byte, size)
	_, err = f.ReadAt(b, 0)
	require.True(t, err == nil || errors.Is(err, io.EOF))
	require.NoError(t, f.Close())
	return b
}

// Bits flip, files are cut off, change places or are emptied, before a restart and while the cache is open.
func TestDamageIsFetchedAgain(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, mem *vfs.Mem){
		"bits": func(t *testing.T, mem *vfs.Mem) {
			for _, name := range segmentsOf(t, mem) {
				rewrite(t, mem, name, func(b []byte) []byte {
					for at := 700; at < len(b); at += 3000 {
						b[at] ^= 1 << (at % 8)
					}
					return b
				})
			}
		},
		"cut": func(t *testing.T, mem *vfs.Mem) {
			for i, name := range segmentsOf(t, mem) {
				rewrite(t, mem, name, func(b []byte) []byte { return b[:len(b)*i/10] })
			}
		},
		"swapped": func(t *testing.T, mem *vfs.Mem) {
			names := segmentsOf(t, mem)
			for i := 0; i+1 < len(names); i += 2 {
				require.NoError(t, mem.Rename(names[i], "other"))
				require.NoError(t, mem.Rename(names[i+1], names[i]))
				require.NoError(t, mem.Rename("other", names[i+1]))
			}
		},
		"gone": func(t *testing.T, mem *vfs.Mem) {
			for _, name := range segmentsOf(t, mem) {
				require.NoError(t, mem.Remove(name))
			}
			require.NoError(t, mem.Remove(filepath.Join("cache", lockName)))
			require.NoError(t, mem.Remove("cache"))
		},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(name, restart), func(t *testing.T) {
				mem, o := vfs.NewMem(), newOrigin(t, 40*testPage)
				c := openCache(t, mem, Options{Capacity: 80 * testPage})
				o.use(c)
				if restart {
					require.NoError(t, c.Close())
				}
				harm(t, mem)
				if restart {
					c = openCache(t, mem, Options{Capacity: 80 * testPage})
				}
				before := o.asked.Load()
				o.use(c)
				asked := o.asked.Load() - before
				if (name == "gone" || name == "swapped") && !restart {
					require.Zero(t, asked, "files that are open stay readable")
					return
				}
				require.Positive(t, asked)
				require.Equal(t, name != "gone", c.Metrics().Damaged > 0)
				o.use(c)
				before = o.asked.Load()
				o.use(c)
				require.Equal(t, before, o.asked.Load(), "all is well again")
				require.Zero(t, c.Metrics().Failed)
			})
		}
	}
}

// After a failure, nothing is written for a while; then the cache works again, though its directory was deleted.
func TestTheCacheComesBackWhenTheDiskDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, o := vfs.NewMem(), newOrigin(t, 10*testPage)
		var full atomic.Bool
		full.Store(true)
		fsys := &hookFS{FS: mem, before: func(op string) error {
			if op == "create" && full.Load() {
				return syscall.ENOSPC
			}
			return nil
		}}
		c := openCache(t, fsys, Options{})
		o.use(c)
		require.EqualValues(t, 1, c.Metrics().Failed, "not with every page")
		require.NoError(t, mem.Remove(filepath.Join("cache", lockName)))
		require.NoError(t, mem.Remove("cache"))
		full.Store(false)
		o.use(c)
		require.Zero(t, c.Metrics().Written)
		time.Sleep(retryAfter) // in a bubble
		o.use(c)
		require.EqualValues(t, 10, c.Metrics().Written)
		require.NoError(t, c.Close())
	})
}

// A file of another kind, or with a number that no file has, is none of the cache's.
func TestForeignFilesAreLeftAlone(t *testing.T) {
	mem, o := vfs.NewMem(), newOrigin(t, 3*testPage)
	require.NoError(t, mem.MkdirAll("cache/pages-dir"))
	for _, name := range []string{"cache/README", "cache/pages-1", "cache/pages-0000000G", "cache/pages-00000001.bak"} {
		rewriteNew(t, mem, name, []byte("mine"))
	}
	rewriteNew(t, mem, "cache/pages-00000007", []byte("not a segment"))
	c := openCache(t, mem, Options{})
	o.use(c)
	require.NoError(t, c.Close())
	names, err := mem.List("cache")
	require.NoError(t, err)
	require.Equal(t, []string{lockName, "README", "pages-00000001.bak", "pages-00000008", "pages-0000000G", "pages-1",
		"pages-dir"}, names)
}

func rewriteNew(t *testing.T, fsys vfs.FS, name string, b []byte) {
	f, err := fsys.Create(name)
	require.NoError(t, err)
	_, err = f.Write(b)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// The cache works on the disk's files, and another process does without.
func TestTwoProcesses(t *testing.T) {
	const variable = "SIFTKV_TEST_CACHE_DIR"
	if dir := os.Getenv(variable); dir != "" {
		c := Open(vfs.OS, dir, Options{Capacity: 1 << 20, PageSize: testPage})
		fmt.Println("locked:", errors.Is(c.Err(), vfs.ErrLocked))
		o := newOrigin(t, 3*testPage)
		o.use(c)
		c.Flush()
		require.NoError(t, c.Close())
		return
	}
	dir := t.TempDir()
	other := func() string {
		cmd := exec.Command(os.Args[0], "-test.run=^TestTwoProcesses$")
		cmd.Env = append(os.Environ(), variable+"="+dir)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	require.Contains(t, other(), "locked: false")
	c := Open(vfs.OS, dir, Options{Capacity: 1 << 20, PageSize: testPage})
	require.NoError(t, c.Err())
	c.Flush()
	o := newOrigin(t, 3*testPage)
	o.use(c)
	require.Zero(t, o.asked.Load(), "what the other process has written")
	require.Contains(t, other(), "locked: true")
	require.NoError(t, c.Close())
	require.Contains(t, other(), "locked: false")
}
