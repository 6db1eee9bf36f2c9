package kv

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	sift "github.com/siftkv/siftkv/internal/vfs"
	"github.com/stretchr/testify/require"
)

// A crashFS is Pebble's crashable file system behind our interface. Before every
// call that changes something it may take a copy of what a power cut at this
// moment would leave: what was synced, and of the rest some pages and some names.
// Or the call fails.
type crashFS struct {
	mem    *vfs.MemFS
	before func() error
}

var _ sift.FS = (*crashFS)(nil)

func newCrashFS(mem *vfs.MemFS, before func() error) *crashFS {
	var mu sync.Mutex
	return &crashFS{mem: mem, before: func() error {
		mu.Lock()
		defer mu.Unlock()
		return before()
	}}
}

func nothing() error { return nil }

func (c *crashFS) Create(name string) (sift.WriteFile, error) {
	if err := c.before(); err != nil {
		return nil, err
	}
	f, err := c.mem.Create(name, vfs.WriteCategoryUnspecified)
	return crashFile{f, c}, err
}

func (c *crashFS) Open(name string) (sift.ReadFile, error) {
	f, err := c.mem.Open(name)
	return crashReadFile{f}, err
}

func (c *crashFS) Remove(name string) error {
	if err := c.before(); err != nil {
		return err
	}
	return c.mem.Remove(name)
}

func (c *crashFS) Rename(oldname, newname string) error {
	if err := c.before(); err != nil {
		return err
	}
	return c.mem.Rename(oldname, newname)
}

func (c *crashFS) Link(oldname, newname string) error {
	if err := c.before(); err != nil {
		return err
	}
	return c.mem.Link(oldname, newname)
}

func (c *crashFS) List(dir string) ([]string, error) {
	names, err := c.mem.List(dir)
	slices.Sort(names)
	return names, err
}

func (c *crashFS) MkdirAll(dir string) error {
	if err := c.before(); err != nil {
		return err
	}
	return c.mem.MkdirAll(dir, 0o755)
}

func (c *crashFS) SyncDir(dir string) error {
	if err := c.before(); err != nil {
		return err
	}
	d, err := c.mem.OpenDir(dir)
	if err != nil {
		return err
	}
	if err := d.Sync(); err != nil {
		return err
	}
	return d.Close()
}

func (c *crashFS) Stat(name string) (int64, error) {
	info, err := c.mem.Stat(name)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (c *crashFS) Lock(name string, _ sift.LockMode) (io.Closer, error) {
	if err := c.before(); err != nil {
		return nil, err
	}
	return c.mem.Create(name, vfs.WriteCategoryUnspecified)
}

type crashFile struct {
	vfs.File
	fs *crashFS
}

func (f crashFile) Write(b []byte) (int, error) {
	if err := f.fs.before(); err != nil {
		n, _ := f.File.Write(b[:len(b)/2])
		return n, err
	}
	return f.File.Write(b)
}

func (f crashFile) Sync() error {
	if err := f.fs.before(); err != nil {
		return err
	}
	return f.File.Sync()
}

type crashReadFile struct{ vfs.File }

func (f crashReadFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// A cut is what a power cut left of a history.
type cut struct {
	disk   *vfs.MemFS
	call   int // of those that change the disk
	synced int // writes that were durable before the cut
	begun  int // writes that had begun
}

// A cutRun writes a random history, and cuts the power at random calls.
type cutRun struct {
	t      *testing.T
	seed   uint64
	rng    *rand.Rand
	states []model // after each write
	opts   *Options
	db     *DB

	synced, begun atomic.Int64
	cuts          []cut
}

const cutsPerHistory = 12

func (r *cutRun) run(steps int) {
	mem := vfs.NewCrashableMem()
	clock := rand.New(rand.NewPCG(r.seed, 77)) // the calls' own: they come from several goroutines
	calls := 0
	r.opts = randomOptions(r.rng)
	r.opts.fs = newCrashFS(mem, func() error {
		calls++
		if len(r.cuts) < cutsPerHistory && clock.IntN(50) == 0 {
			c := cut{call: calls, synced: int(r.synced.Load())}
			c.disk = crashClone(mem, clock)
			c.begun = int(r.begun.Load())
			r.cuts = append(r.cuts, c)
		}
		return nil
	})
	r.states = []model{{}}
	r.open()
	for range steps {
		r.step()
	}
	require.NoError(r.t, r.db.Close())
	for _, c := range r.cuts {
		r.check(c)
	}
}

func crashClone(mem *vfs.MemFS, rng *rand.Rand) *vfs.MemFS {
	return mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 20, 50, 80, 100}[rng.IntN(5)], RNG: rng})
}

func (r *cutRun) open() {
	var err error
	r.db, err = Open("db", r.opts)
	require.NoError(r.t, err)
}

// durable notes that all writes so far survive.
func (r *cutRun) durable() { r.synced.Store(int64(len(r.states) - 1)) }

func (r *cutRun) step() {
	switch n := r.rng.IntN(100); {
	case n < 3:
		require.NoError(r.t, r.db.Flush())
		r.durable()
	case n < 4:
		require.NoError(r.t, r.db.Compact(nil, nil))
		r.durable()
	case n < 6:
		require.NoError(r.t, r.db.Close())
		r.durable()
		fs := r.opts.fs
		r.opts = randomOptions(r.rng)
		r.opts.fs = fs
		r.open()
	default:
		require.NoError(r.t, r.write())
	}
}

// write commits a batch that also counts itself.
func (r *cutRun) write() error {
	n := len(r.states)
	m := maps.Clone(r.states[n-1])
	b := r.db.NewBatch()
	m["count"] = strconv.Itoa(n)
	require.NoError(r.t, b.Set([]byte("count"), []byte(m["count"])))
	for range r.rng.IntN(6) {
		k := fmt.Sprintf("key/%03d", r.rng.IntN(80))
		switch r.rng.IntN(8) {
		case 0:
			require.NoError(r.t, b.Delete([]byte(k)))
			delete(m, k)
		case 1:
			hi := fmt.Sprintf("%s/%d", k[:6], r.rng.IntN(10))
			require.NoError(r.t, b.DeleteRange([]byte(k), []byte(hi)))
			m.deleteRange([]byte(k), []byte(hi))
		default:
			m[k] = string(randomBytes(r.rng, r.rng.IntN(1+r.rng.IntN(6000))))
			require.NoError(r.t, b.Set([]byte(k), []byte(m[k])))
		}
	}
	r.states = append(r.states, m)
	r.begun.Store(int64(n))
	o := []*WriteOptions{Sync, NoSync, Async}[r.rng.IntN(3)]
	err := b.Commit(o)
	if err == nil && o == Sync {
		r.durable()
	}
	return err
}

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// check opens the store on what a cut left: it holds the first so many writes,
// and all that were durable. Then the power fails while it recovers, and it is to
// recover the same.
func (r *cutRun) check(c cut) {
	var again *vfs.MemFS
	calls, at := 0, 1+r.rng.IntN(12)
	n := r.recovered(c, c.disk, func() error {
		if calls++; calls == at {
			again = crashClone(c.disk, r.rng)
		}
		return nil
	})
	if again != nil {
		require.Equal(r.t, n, r.recovered(c, again, nothing), "seed %d: a cut during recovery has lost writes", r.seed)
	}
}

// recovered returns how many writes are there.
func (r *cutRun) recovered(c cut, disk *vfs.MemFS, before func() error) int {
	return r.recoveredOn(c, newCrashFS(disk, before))
}

func (r *cutRun) recoveredOn(c cut, fs sift.FS) int {
	what := fmt.Sprintf("seed %d, cut before call %d: %d writes were durable, %d begun", r.seed, c.call, c.synced, c.begun)
	o := randomOptions(r.rng)
	o.fs = fs
	db, err := Open("db", o)
	require.NoError(r.t, err, what)
	n := 0
	if v, err := db.Get([]byte("count")); err != nil {
		require.ErrorIs(r.t, err, ErrNotFound, what)
	} else {
		n, err = strconv.Atoi(string(v))
		require.NoError(r.t, err)
	}
	require.GreaterOrEqual(r.t, n, c.synced, what)
	require.LessOrEqual(r.t, n, c.begun, what)
	requireContents(r.t, r.states[n], db)
	require.NoError(r.t, db.verify(io.Discard), what)
	require.NoError(r.t, db.Close(), what)
	return n
}

// TestPowerCut cuts the power in the middle of random histories. POWER_CUTS sets
// how often at the least.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	cuts, lost := 0, 0
	for seed := uint64(0); cuts < envInt("POWER_CUTS", 240/raceFactor); seed++ {
		r := &cutRun{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 3))}
		r.run(150)
		cuts += len(r.cuts)
		for _, c := range r.cuts {
			lost += c.begun - c.synced
		}
	}
	t.Logf("%d power cuts, each followed by one during recovery; %d writes were under way or not durable", cuts, lost)
}
