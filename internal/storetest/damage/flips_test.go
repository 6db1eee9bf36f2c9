package damage

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// A flipRun flips bytes of a small store's files, one at a time.
type flipRun struct {
	t        *testing.T
	files    map[string][]byte
	want     storetest.Model
	dir      string
	lost     map[string]string // what a lost last record may take with it: key and value before
	mode     kv.RecoveryMode
	told     string // by Verify of the store before a byte is changed, in verified
	verified string // a directory of the files, for Verify

	flips, refused, failed int
}

// newFlipRun writes a store with tables in two levels, a range tombstone, and a log
// that was left as o.
func newFlipRun(t *testing.T, closed bool) *flipRun {
	f := &flipRun{t: t, want: storetest.Model{}, dir: "db", files: map[string][]byte{}, verified: t.TempDir()}
	mem := vfs.NewMem()
	db, err := kv.Open(f.dir, stores.With(harness.Harness{FS: mem}, &kv.Options{MemtableSize: 64 << 10, BlockSize: 128,
		CacheSize: -1}))
	require.NoError(t, err)
	put := func(k, v string) {
		require.NoError(t, db.Set([]byte(k), []byte(v), kv.Sync))
		f.want[k] = v
	}
	for i := range 20 {
		put(fmt.Sprintf("a/%02d", i), fmt.Sprintf("the value of number %02d", i))
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	for i := range 10 {
		put(fmt.Sprintf("a/%02d", 2*i), "another value")
	}
	require.NoError(t, db.DeleteRange([]byte("a/05"), []byte("a/08"), kv.Sync))
	f.want.DeleteRange([]byte("a/05"), []byte("a/08"))
	require.NoError(t, db.Flush(t.Context()))
	for i := range 6 {
		put(fmt.Sprintf("b/%02d", i), "in the log")
	}
	if closed {
		require.NoError(t, db.Close())
	} else {
		require.NoError(t, db.Set([]byte("last"), []byte("of the log"), kv.NoSync))
		f.lost = map[string]string{"last": "of the log"}
		f.want["last"] = "of the log"
		stores.Crash(t, db)
	}
	names, err := mem.List(f.dir)
	require.NoError(t, err)
	for _, name := range names {
		f.files[name] = f.read(mem, name)
		require.NoError(t, os.WriteFile(filepath.Join(f.verified, name), f.files[name], 0o600))
	}
	f.told, _ = f.verify()
	return f
}

func (f *flipRun) read(mem vfs.FS, name string) []byte {
	r, err := mem.Open(filepath.Join(f.dir, name))
	require.NoError(f.t, err)
	size, err := r.Size()
	require.NoError(f.t, err)
	b := make([]byte, size)
	if size > 0 {
		_, err = r.ReadAt(b, 0)
		require.NoError(f.t, err)
	}
	require.NoError(f.t, r.Close())
	return b
}

// verify returns what Verify says of the directory that it is for.
func (f *flipRun) verify() (told string, err error) {
	var log bytes.Buffer
	err = kv.Verify(f.t.Context(), f.verified, &log)
	return fmt.Sprint(log.String(), err), err
}

// disk returns the store's files, one of them changed.
func (f *flipRun) disk(name string, changed []byte) vfs.FS {
	mem := vfs.NewMem()
	require.NoError(f.t, mem.MkdirAll(f.dir))
	for n, b := range f.files {
		if n == name {
			b = changed
		}
		w, err := mem.Create(filepath.Join(f.dir, n))
		require.NoError(f.t, err)
		_, err = w.Write(b)
		require.NoError(f.t, err)
		require.NoError(f.t, w.Close())
	}
	return mem
}

// flip changes a byte, and looks at the store in three ways: every key by itself, all
// in order, and by Verify. What any of them returns is right, or an error that names
// the file; and Verify finds every flip.
func (f *flipRun) flip(name string, at int) {
	f.flips++
	what := fmt.Sprintf("byte %d of %s (%v)", at, name, f.mode)
	changed := bytes.Clone(f.files[name])
	changed[at] ^= 1 << (at % 8)
	disk := f.disk(name, changed)

	require.NoError(f.t, os.WriteFile(filepath.Join(f.verified, name), changed, 0o600))
	told, err := f.verify()
	require.NoError(f.t, os.WriteFile(filepath.Join(f.verified, name), f.files[name], 0o600))
	require.NotEqual(f.t, f.told, told, "%s: Verify finds nothing", what)
	require.Contains(f.t, told, name, what)
	if err != nil && name != manifest.OptionsName { // which opening a store does not ask
		require.ErrorContains(f.t, err, name, what)
	}
	db, err := kv.Open(f.dir, stores.With(harness.Harness{FS: disk}, &kv.Options{RecoveryMode: f.mode, CacheSize: -1,
		MemtableSize: 64 << 10}))
	if err != nil {
		f.refused++
		require.True(f.t, named(err), "%s: %v", what, err)
		require.ErrorContains(f.t, err, name, what)
		return
	}
	defer func() { require.NoError(f.t, db.Close(), what) }()
	damaged := f.lookUp(db, name, what)
	damaged = f.scan(db, name, what) || damaged
	if damaged {
		f.failed++
	}
}

// named reports whether an error is one that damage is told by. A version is believed after its checksum, so that
// damage is not taken for a newer format.
func named(err error) bool {
	return errors.Is(err, kv.ErrCorruption) && !errors.Is(err, kv.ErrNewerFormat)
}

// lookUp looks up every key, and some that are not there. It reports whether damage
// was met.
func (f *flipRun) lookUp(db *kv.DB, name, what string) (damaged bool) {
	for k, v := range f.want {
		got, err := db.Get([]byte(k))
		switch {
		case errors.Is(err, kv.ErrNotFound):
			require.Contains(f.t, f.lost, k, what)
		case err != nil:
			damaged = true
			require.True(f.t, named(err), "%s: %v", what, err)
			require.ErrorContains(f.t, err, name, what)
		default:
			require.Equal(f.t, v, string(got), what)
		}
	}
	for _, k := range []string{"a", "a/05", "a/06", "a/100", "zz"} {
		if _, ok := f.want[k]; ok {
			continue
		}
		if ok, err := db.Has([]byte(k)); err != nil {
			damaged = true
			require.ErrorContains(f.t, err, name, what)
		} else {
			require.False(f.t, ok, "%s: %q", what, k)
		}
	}
	return damaged
}

// scan goes through the store both ways, as far as it gets.
func (f *flipRun) scan(db *kv.DB, name, what string) (damaged bool) {
	it, err := db.NewIter(nil)
	if err != nil {
		require.ErrorContains(f.t, err, name, what)
		return true
	}
	defer func() { _ = it.Close() }() // it returns the same error again
	for _, way := range []struct{ start, move func() bool }{{it.First, it.Next}, {it.Last, it.Prev}} {
		n := 0
		for ok := way.start(); ok; ok = way.move() {
			v, there := f.want[string(it.Key())]
			require.True(f.t, there, "%s: key %q", what, it.Key())
			require.Equal(f.t, v, string(it.Value()), what)
			n++
		}
		if err := it.Error(); err != nil {
			damaged = true
			require.True(f.t, named(err), "%s: %v", what, err)
			require.ErrorContains(f.t, err, name, what)
		} else {
			require.GreaterOrEqual(f.t, n, len(f.want)-len(f.lost), what)
		}
	}
	return damaged
}

// TestBitFlips flips a bit in bytes of a store's files at equal distances, of a store that was closed and of one that
// was killed.
func TestBitFlips(t *testing.T) {
	t.Parallel()
	stride := scale.Stride(47, 47)
	for _, closed := range []bool{true, false} {
		for _, mode := range []kv.RecoveryMode{kv.PointInTime, kv.Absolute} {
			if !closed && mode == kv.Absolute {
				continue // it opens nothing that was killed
			}
			f := newFlipRun(t, closed)
			f.mode = mode
			for name, data := range f.files {
				if name == manifest.LockName {
					continue // it says nothing about the store
				}
				for at := 0; at < len(data); at += stride {
					f.flip(name, at)
				}
			}
			require.NotZero(t, f.flips)
			t.Logf("closed %v, %v: %d bytes flipped: %d times the store does not open, %d times a read fails; "+
				"Verify finds all",
				closed, mode, f.flips, f.refused, f.failed)
		}
	}
}
