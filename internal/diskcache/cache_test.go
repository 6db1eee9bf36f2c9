package diskcache

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/vfs"
)

const testPage = 4 << 10

// An origin has objects, and counts how often it is asked.
type origin struct {
	t       *testing.T
	objects map[string][]byte
	asked   atomic.Int64
	bytes   atomic.Int64
}

func newOrigin(t *testing.T, sizes ...int) *origin {
	o := &origin{t: t, objects: map[string][]byte{}}
	for i, size := range sizes {
		o.objects[fmt.Sprint("object", i)] = noise(byte(i), size)
	}
	return o
}

func noise(seed byte, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

func (o *origin) fetch(name string) fetch {
	return func(p []byte, off int64) (int, error) {
		o.asked.Add(1)
		o.bytes.Add(int64(len(p)))
		return bytes.NewReader(o.objects[name]).ReadAt(p, off)
	}
}

// read reads through the cache, and requires the right bytes. It returns how often the origin was asked.
func (o *origin) read(c *Cache, name string, off, n int) int64 {
	o.t.Helper()
	before, data := o.asked.Load(), o.objects[name]
	p := make([]byte, n)
	m, err := c.ReadAt(o.t.Context(), name, int64(len(data)), p, int64(off), o.fetch(name))
	require.NoError(o.t, err)
	require.Equal(o.t, n, m)
	require.True(o.t, bytes.Equal(data[off:off+n], p), "%s: %d bytes at %d", name, n, off)
	return o.asked.Load() - before
}

// readValue is read of a value of a file of which passes read parts.
func (o *origin) readValue(c *Cache, name string, part, off, n int) int64 {
	o.t.Helper()
	before, data := o.asked.Load(), o.objects[name]
	p := make([]byte, n)
	m, err := c.ReadValueAt(o.t.Context(), name, int64(len(data)), part, p, int64(off), o.fetch(name))
	require.NoError(o.t, err)
	require.Equal(o.t, n, m)
	require.True(o.t, bytes.Equal(data[off:off+n], p), "%s: %d bytes at %d", name, n, off)
	return o.asked.Load() - before
}

func openCache(t *testing.T, fsys vfs.FS, o Options) *Cache {
	t.Helper()
	if o.Capacity == 0 {
		o.Capacity = 1 << 20
	}
	if o.PageSize == 0 {
		o.PageSize = testPage
	}
	c := Open(fsys, "cache", o)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	c.Flush()
	return c
}

func TestWhatWasReadIsReadFromDisk(t *testing.T) {
	mem, o := vfs.NewMem(), newOrigin(t, 100000, 10, testPage, 3*testPage)
	c := openCache(t, mem, Options{})
	require.NoError(t, c.Err())
	for name, data := range o.objects {
		require.EqualValues(t, 1, o.read(c, name, 0, 1))
		require.Zero(t, o.read(c, name, 0, min(testPage, len(data))), "while it is being written, or after")
		c.Flush()
		require.Zero(t, o.read(c, name, 0, min(testPage, len(data))))
	}
	require.EqualValues(t, 1, o.read(c, "object0", testPage-1, 2*testPage), "one request for pages side by side")
	require.EqualValues(t, 1, o.read(c, "object0", 99999, 1), "the last page is short")
	c.Flush()
	m := c.Metrics()
	require.EqualValues(t, 4+2, m.Misses)
	require.EqualValues(t, 8, m.Hits)
	require.EqualValues(t, 4+2+1, m.Written)
	require.Equal(t, 7, m.Pages)
	require.Zero(t, m.Damaged+m.Failed+m.Dropped+m.Evicted)

	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	require.Positive(t, o.read(c, "object0", 0, 1), "a closed cache lets reads pass")
	c = openCache(t, mem, Options{})
	require.Equal(t, 7, c.Metrics().Pages)
	require.Equal(t, m.Bytes, c.Metrics().Bytes)
	for name, data := range o.objects {
		require.Zero(t, o.read(c, name, 0, min(testPage, len(data))))
	}
	require.Zero(t, o.read(c, "object0", 99999, 1))
	require.Zero(t, o.read(c, "object0", testPage-1, 2*testPage))
}

// Compactions and scans take what is here, and leave nothing; ends of files are kept whatever their size.
func TestPassesLeaveNothing(t *testing.T) {
	const size = 100 * testPage
	o := newOrigin(t, size)
	c := openCache(t, vfs.NewMem(), Options{PassSize: 10 * testPage})
	require.EqualValues(t, 1, o.read(c, "object0", 7, 20*testPage))
	require.EqualValues(t, 20*testPage, o.bytes.Load(), "no more than it wants")
	require.EqualValues(t, 1, o.read(c, "object0", 7, 20*testPage))
	c.Flush()
	require.Zero(t, c.Metrics().Pages)
	require.EqualValues(t, 1, o.read(c, "object0", 0, 9*testPage))
	o.bytes.Store(0)
	require.EqualValues(t, 1, o.read(c, "object0", 5, 10*testPage))
	require.EqualValues(t, testPage+5, o.bytes.Load(), "what is not here")
	require.EqualValues(t, 1, o.read(c, "object0", size-30*testPage, 30*testPage))
	require.Zero(t, o.read(c, "object0", size-30*testPage, 30*testPage))
}

func TestManyWhoMissAPageFetchItOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOrigin(t, 10*testPage)
		c := openCache(t, vfs.NewMem(), Options{})
		get, failing := o.fetch("object0"), atomic.Bool{}
		slow := func(p []byte, off int64) (int, error) {
			time.Sleep(time.Second)
			if failing.Load() {
				o.asked.Add(1)
				return 0, errTest
			}
			return get(p, off)
		}
		var all sync.WaitGroup
		many := func(want error) {
			for i := range 20 {
				all.Go(func() {
					p := make([]byte, 100)
					_, err := c.ReadAt(t.Context(), "object0", 10*testPage, p, int64(i*100), slow)
					require.ErrorIs(t, err, want)
					require.Equal(t, want == nil, bytes.Equal(o.objects["object0"][i*100:][:100], p))
				})
			}
			all.Wait()
		}
		failing.Store(true)
		begun := time.Now()
		many(errTest)
		require.EqualValues(t, 20, o.asked.Load())
		require.Equal(t, 2*time.Second, time.Since(begun), "those who have waited for a failure do not wait again")
		failing.Store(false)
		many(nil)
		require.EqualValues(t, 21, o.asked.Load())
	})
}

var errTest = errors.New("a failure of the test")

func TestErrorsOfTheStoreAreTheReaders(t *testing.T) {
	o := newOrigin(t, 3*testPage)
	c := openCache(t, vfs.NewMem(), Options{})
	for _, n := range []int{10, 2 * testPage} {
		fail := func([]byte, int64) (int, error) { return 3, errTest }
		_, err := c.ReadAt(t.Context(), "object0", 3*testPage, make([]byte, n), 0, fail)
		require.ErrorIs(t, err, errTest)
	}
	// An object that ends before it should gives what it has.
	o.objects["short"] = o.objects["object0"][:testPage+500]
	p := make([]byte, 400)
	_, err := c.ReadAt(t.Context(), "short", 3*testPage, p, testPage+50, o.fetch("short"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(o.objects["short"][testPage+50:][:400], p))
	n, err := c.ReadAt(t.Context(), "short", 3*testPage, p, testPage+300, o.fetch("short"))
	require.Equal(t, 200, n)
	require.ErrorIs(t, err, io.EOF)
	c.Flush()
	require.Zero(t, c.Metrics().Pages)
}

// The bound holds at every moment, with what is written again and the files themselves; what is used stays.
func TestTheCacheIsBoundedAndKeepsWhatIsUsed(t *testing.T) {
	const capacity, pages = 256 * testPage, 1000
	mem, o := vfs.NewMem(), newOrigin(t, pages*testPage)
	fsys := &measuredFS{FS: mem, dir: "cache"}
	c := openCache(t, fsys, Options{Capacity: capacity})
	hot, misses := []int{3, 500, 900}, int64(0)
	for i := range 3 * pages {
		o.read(c, "object0", i%pages*testPage+5, 100)
		c.Flush()
		for _, page := range hot {
			misses += o.read(c, "object0", page*testPage+1000, 10)
			c.Flush()
		}
	}
	require.EqualValues(t, len(hot), misses, "once")
	m := c.Metrics()
	require.Greater(t, m.Evicted, int64(2*pages))
	require.Greater(t, m.Pages, 200)
	require.LessOrEqual(t, fsys.most.Load(), int64(capacity))
	require.Greater(t, fsys.most.Load(), int64(capacity*8/10))
	require.EqualValues(t, fsys.now(t), m.Bytes)
	require.Zero(t, m.Damaged+m.Failed)

	require.NoError(t, c.Close())
	c = openCache(t, fsys, Options{Capacity: capacity / 2})
	require.LessOrEqual(t, fsys.now(t), int64(capacity/2), "a smaller one than before")
	require.Greater(t, c.Metrics().Pages, 80)
	for i := range pages {
		o.read(c, "object0", i*testPage, 100)
		c.Flush()
		require.LessOrEqual(t, fsys.now(t), int64(capacity/2))
	}
}

// A measuredFS notes how much a directory has had at most, with an overhead for each file but the lock.
type measuredFS struct {
	vfs.FS
	dir  string
	most atomic.Int64
}

func (m *measuredFS) Create(name string) (vfs.WriteFile, error) {
	f, err := m.FS.Create(name)
	return measuredFile{f, m}, err
}

func (m *measuredFS) now(t *testing.T) (size int64) {
	names, err := m.List(m.dir)
	require.NoError(t, err)
	for _, name := range names {
		if name != lockName {
			n, err := m.Stat(filepath.Join(m.dir, name))
			require.NoError(t, err)
			size += n + fileOverhead
		}
	}
	return size + m.planned(names)
}

// planned is the length of the index that the newest file will have.
func (m *measuredFS) planned(names []string) int64 {
	if len(names) < 2 {
		return 0
	}
	number, _ := segmentNumber(names[len(names)-1])
	s := &segment{number: number, name: filepath.Join(m.dir, names[len(names)-1])}
	var err error
	if s.size, err = m.Stat(s.name); err != nil {
		return 0
	}
	if s.file, err = m.Open(s.name); err != nil || s.readIndex() == nil {
		return 0
	}
	if s.readPages() != nil {
		return 0
	}
	return int64(indexTrailer + indexEntry*len(s.pages))
}

type measuredFile struct {
	vfs.WriteFile
	m *measuredFS
}

func (f measuredFile) Write(p []byte) (int, error) {
	n, err := f.WriteFile.Write(p)
	names, _ := f.m.List(f.m.dir)
	var size int64
	for _, name := range names {
		if name != lockName {
			n, _ := f.m.Stat(filepath.Join(f.m.dir, name))
			size += n + fileOverhead
		}
	}
	f.m.most.Store(max(f.m.most.Load(), size))
	return n, err
}

func TestOneHasTheDirectory(t *testing.T) {
	mem, o := vfs.NewMem(), newOrigin(t, 2*testPage)
	first := openCache(t, mem, Options{})
	second := openCache(t, mem, Options{})
	require.ErrorIs(t, second.Err(), vfs.ErrLocked)
	for range 2 {
		require.EqualValues(t, 1, o.read(second, "object0", 0, 10))
		second.Flush()
	}
	require.Zero(t, second.Metrics().Pages)
	require.EqualValues(t, 1, o.read(first, "object0", 0, 10))
	first.Flush()
	require.NoError(t, second.Close())
	require.Zero(t, o.read(first, "object0", 0, 10))
	require.NoError(t, first.Close())
	require.NoError(t, openCache(t, mem, Options{}).Err())
}

// After Close a cache can be opened, also if another call of Close came first, as when a context ends.
func TestASecondCloseWaitsForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold, mem, o := make(chan any), vfs.NewMem(), newOrigin(t, testPage)
		c := openCache(t, &hookFS{FS: mem, before: func(op string) error {
			if op == "write" {
				<-hold
			}
			return nil
		}}, Options{})
		o.read(c, "object0", 0, 10)
		synctest.Wait() // the page is being written
		go func() { _ = c.Close() }()
		synctest.Wait()
		time.AfterFunc(time.Second, func() { close(hold) })
		require.NoError(t, c.Close())
		require.NoError(t, openCache(t, mem, Options{}).Err())
	})
}

func TestACacheThatCannotBeLetsReadsPass(t *testing.T) {
	o := newOrigin(t, 2*testPage)
	mem := vfs.NewMem()
	f, err := mem.Create("cache")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for _, c := range []*Cache{
		nil,
		openCache(t, mem, Options{}),
		openCache(t, vfs.NewMem(), Options{Capacity: testPage}),
	} {
		require.Equal(t, c == nil, c.Err() == nil)
		require.EqualValues(t, 1, o.read(c, "object0", 5, testPage))
		c.Add("object0", bytes.NewReader(o.objects["object0"]), 2*testPage)
		c.Flush()
		require.Zero(t, c.Metrics())
		require.NoError(t, c.Close())
	}
}

// Pages beyond the memory for them are not kept, and nobody waits.
func TestReadsDoNotWaitForTheDisk(t *testing.T) {
	o := newOrigin(t, 100*testPage)
	hold := make(chan any)
	fsys := &hookFS{FS: vfs.NewMem(), before: func(op string) error {
		if op == "write" {
			<-hold
		}
		return nil
	}}
	c := openCache(t, fsys, Options{QueueBytes: 10 * testPage})
	for i := range 100 {
		require.EqualValues(t, 1, o.read(c, "object0", i*testPage, 10))
	}
	require.EqualValues(t, 90, c.Metrics().Dropped)
	require.Zero(t, o.read(c, "object0", 5, 100), "what waits to be written can be read")
	close(hold)
	c.Flush()
	require.EqualValues(t, 10, c.Metrics().Written)
}

// Random reads, restarts and other uses at the same time.
func TestConcurrentReadsAreRight(t *testing.T) {
	mem := vfs.NewMem()
	o := newOrigin(t, 50*testPage, 77777, 33*testPage+1)
	for round := range 3 {
		c := openCache(t, mem, Options{Capacity: 40 * testPage, PassSize: 12 * testPage})
		var all sync.WaitGroup
		for g := range 4 {
			all.Go(func() {
				random := rand.New(rand.NewPCG(uint64(round), uint64(g)))
				for range 1500 {
					name := fmt.Sprint("object", random.IntN(3))
					data := o.objects[name]
					off := random.IntN(len(data))
					n := 1 + random.IntN(min(len(data)-off, []int{100, testPage, 20 * testPage}[random.IntN(3)]))
					p := make([]byte, n)
					_, err := c.ReadAt(o.t.Context(), name, int64(len(data)), p, int64(off), o.fetch(name))
					if err != nil || !bytes.Equal(data[off:off+n], p) {
						t.Errorf("%s: %d bytes at %d: %v", name, n, off, err)
						return
					}
				}
			})
		}
		all.Wait()
		c.Flush()
		m := c.Metrics()
		require.Positive(t, m.Evicted)
		require.Zero(t, m.Damaged+m.Failed)
		require.LessOrEqual(t, m.Bytes, int64(40*testPage))
		require.NoError(t, c.Close())
	}
}

// Of files of values, reads stay that are as long as those of passes over sorted files, but not passes, nor what would
// take too much of the cache.
func TestLongValuesAreKept(t *testing.T) {
	const capacity, part = 1 << 20, 20 * testPage
	c := openCache(t, vfs.NewMem(), Options{Capacity: capacity, PassSize: 2 * testPage})
	o := newOrigin(t, 100*testPage, 100*testPage)
	for i, n := range []int{1, testPage, 3 * testPage, 7 * testPage, capacity / 32} {
		require.EqualValues(t, 1, o.readValue(c, "object0", part, 20*i*testPage+7, n), n)
		require.Zero(t, o.readValue(c, "object0", part, 20*i*testPage+7, n), n)
	}
	asked := o.bytes.Load()
	for range 2 {
		require.EqualValues(t, 1, o.readValue(c, "object1", part, 5, capacity/32+1))
		require.EqualValues(t, 1, o.readValue(c, "object1", 2*testPage, 5, 2*testPage))
	}
	require.EqualValues(t, 2*(capacity/32+1+2*testPage), o.bytes.Load()-asked, "passes fetch no more than they want")
}
