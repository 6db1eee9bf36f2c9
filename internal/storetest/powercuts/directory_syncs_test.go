package powercuts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
	"github.com/siftkv/siftkv/kv"
)

// A nameFS is a disk on which a few syncs of directories fail, one after the other: those from
// number from on, with an error, or with a lie.
type nameFS struct {
	*crashfs.FS
	from, fails int
	done        bool // what fails has been done all the same
	lies        bool
	syncs       atomic.Int64
	failed      atomic.Int64
	dir         atomic.Value // that failed, or of which a lie was told
	worked      atomic.Int64 // syncs of that since then
}

func (f *nameFS) SyncDir(dir string) error {
	n := int(f.syncs.Add(1))
	if n < f.from || n >= f.from+f.fails {
		err := f.FS.SyncDir(dir)
		if n >= f.from+f.fails && err == nil && f.dir.Load() == dir {
			f.worked.Add(1)
		}
		return err
	}
	f.dir.Store(dir)
	f.failed.Add(1)
	switch {
	case f.lies:
		return nil
	case f.done:
		return errors.Join(f.FS.SyncDir(dir), storetest.ErrDisk)
	}
	return storetest.ErrDisk
}

// A nameRun writes a history to such a disk. All that it writes has a key of its own.
type nameRun struct {
	t     *testing.T
	rng   *rand.Rand
	fs    *nameFS
	db    *kv.DB
	acked atomic.Int64 // the keys below it are there, but for those that failed
	begun atomic.Int64
	lost  map[int]bool // keys of writes that failed
	cuts  []nameCut
	what  string
}

// A nameCut is what a cut left, and what must be there.
type nameCut struct {
	disk         *crashfs.Disk
	acked, begun int
}

// TestPowerCutAfterASyncOfADirectoryThatFailed has each sync of a directory in a history fail, alone and
// with the one after it, and cuts the power at later calls. What was acknowledged is there, and the store opens.
// After a sync that lied, so it is once another one of the same directory was honest.
func TestPowerCutAfterASyncOfADirectoryThatFailed(t *testing.T) {
	t.Parallel()
	stride, step := scale.Stride(100, 25), scale.Stride(3, 1) // of calls between cuts, and of syncs between histories
	cuts, syncs := 0, 0
	for _, fs := range []*nameFS{{fails: 1}, {fails: 2}, {fails: 1, done: true}, {fails: 1, lies: true}} {
		for from := 1; ; from += step {
			r := &nameRun{t: t, rng: rand.New(rand.NewPCG(uint64(from), 91)), lost: map[int]bool{},
				fs: &nameFS{from: from, fails: fs.fails, done: fs.done, lies: fs.lies},
				what: fmt.Sprintf("syncs of directories from %d, fail: %d, done: %v, lie: %v", from, fs.fails,
					fs.done, fs.lies)}
			r.run(stride)
			if r.fs.failed.Load() == 0 {
				break
			}
			syncs++
			for _, c := range r.cuts {
				r.check(c)
				cuts++
			}
		}
	}
	t.Logf("%d histories with a sync of a directory that failed, %d power cuts", syncs, cuts)
}

func (r *nameRun) run(stride int) {
	mem := crashfs.NewDisk()
	r.fs.FS = crashfs.New(mem, func() error {
		watched := r.fs.failed.Load() > 0 && (!r.fs.lies || r.fs.worked.Load() > 0)
		if watched && r.rng.IntN(stride) == 0 {
			c := nameCut{acked: int(r.acked.Load())}
			c.disk = mem.CutTo(0, nil)
			if r.rng.IntN(3) == 0 {
				c.disk = mem.Cut(r.rng)
			}
			c.begun = int(r.begun.Load())
			r.cuts = append(r.cuts, c)
		}
		return nil
	})
	r.open()
	for range 2 {
		for range 14 {
			r.write(func(key string) error { return r.db.Set([]byte(key), randomValue(key), kv.Sync) })
		}
		r.write(func(key string) error {
			name := "in" + key
			storetest.IngestFile(r.t, r.fs, name, nil, fmt.Sprintf("%s=%s", key, randomValue(key)))
			return r.db.Ingest(context.Background(), []string{name}, nil)
		})
		_ = r.db.Compact(context.Background(), nil, nil)
		stores.UntilResumed(r.db)
		name := "copies/" + strconv.Itoa(int(r.begun.Load()))
		if err := r.db.Checkpoint(context.Background(), name); err == nil {
			r.checkCopy(mem, name)
		}
		stores.UntilResumed(r.db)
		if r.db.Close() == nil {
			r.acked.Store(r.begun.Load())
		}
		r.open()
	}
	require.NoError(r.t, errors.Join(r.db.Close()), r.what)
}

// randomValue is a value that the key tells.
func randomValue(key string) []byte {
	n, _ := strconv.Atoi(key)
	return storetest.RandomBytes(rand.New(rand.NewPCG(uint64(n), 5)), 9000)
}

// open opens the store, as often as it takes.
func (r *nameRun) open() {
	for {
		var err error
		r.db, err = kv.Open("a/db", stores.With(harness.Harness{FS: r.fs, Backoff: storetest.Quick,
			MaxManifestSize: 1000}, &kv.Options{MemtableSize: 64 << 10, TargetFileSize: 32 << 10,
			BaseLevelSize: 32 << 10, CacheSize: -1}))
		if err == nil {
			return
		}
		require.ErrorIs(r.t, err, storetest.ErrDisk, r.what)
	}
}

// write does the next write, which may fail; the store then resumes.
func (r *nameRun) write(do func(key string) error) {
	n := int(r.begun.Add(1)) - 1
	if err := do(fmt.Sprintf("%04d", n)); err != nil {
		require.ErrorIs(r.t, err, storetest.ErrDisk, r.what)
		r.lost[n] = true
		stores.UntilResumed(r.db)
		return
	}
	r.acked.Store(int64(n + 1))
}

// check opens the store on what a cut left.
func (r *nameRun) check(c nameCut) {
	db, err := kv.Open("a/db", stores.With(harness.Harness{FS: crashfs.New(c.disk, storetest.Nothing)},
		&kv.Options{CacheSize: -1,
			MemtableSize: 64 << 10}))
	require.NoError(r.t, err, r.what)
	r.checkKeys(db, c.acked, c.begun)
	require.NoError(r.t, errors.Join(storetest.Verify(db, io.Discard), db.Set([]byte("new"), nil, kv.Sync), db.Close()),
		r.what)
}

func (r *nameRun) checkKeys(db *kv.DB, acked, begun int) {
	for n := range begun {
		key := fmt.Sprintf("%04d", n)
		v, err := db.Get([]byte(key))
		if errors.Is(err, kv.ErrNotFound) && (n >= acked || r.lost[n]) {
			continue
		}
		require.NoError(r.t, err, "%s: key %d, %d acknowledged", r.what, n, acked)
		require.Equal(r.t, randomValue(key), v)
	}
}

// checkCopy opens a checkpoint that was made.
func (r *nameRun) checkCopy(mem *crashfs.Disk, name string) {
	if r.fs.lies {
		return
	}
	disk := mem.CutTo(0, nil)
	db, err := kv.Open(name, stores.With(harness.Harness{FS: crashfs.New(disk, storetest.Nothing)},
		&kv.Options{ReadOnly: true,
			CacheSize: -1}))
	require.NoError(r.t, err, r.what)
	r.checkKeys(db, int(r.acked.Load()), int(r.begun.Load()))
	require.NoError(r.t, db.Close())
}
