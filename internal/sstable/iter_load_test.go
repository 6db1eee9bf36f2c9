package sstable

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/cache"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A countedFile counts reads, and fails those that touch the byte at fail.
type countedFile struct {
	*bytes.Reader
	reads int
	fail  int64 // 0: none
}

var errFailed = errors.New("the disk failed")

func (c *countedFile) ReadAt(b []byte, offset int64) (int, error) {
	c.reads++
	if c.fail > 0 && offset <= c.fail && c.fail < offset+int64(len(b)) {
		return 0, errFailed
	}
	return c.Reader.ReadAt(b, offset)
}

var _ io.ReaderAt = (*countedFile)(nil)

// A memoryFile is a file that the system has in memory, all of it or, with a fail set, the rest.
type memoryFile struct {
	*countedFile
	cold bool // nothing
}

// ReadNow implements vfs.NowReader.
func (m *memoryFile) ReadNow(b []byte, offset int64) vfs.NowRead {
	if m.cold {
		return vfs.NowBegun
	}
	if _, err := m.ReadAt(b, offset); err != nil {
		return vfs.NowUnable
	}
	return vfs.NowDone
}

const runKeys = 6000

// openCounted opens a file of runKeys keys in many blocks.
func openCounted(t *testing.T, c Compression, cacheSize int64) (*Reader, *countedFile) {
	data := plainFile(t, runKeys, WriterOptions{Compression: c, BlockSize: 1 << 10, Filter: mustParse("none"), ID: 1})
	f := &countedFile{Reader: bytes.NewReader(data)}
	r := openRun(t, f, len(data), cacheSize)
	f.reads = 0
	return r, f
}

// openRun opens a file of size bytes in many blocks, with a cache of its own, until the test ends.
func openRun(t *testing.T, f io.ReaderAt, size int, cacheSize int64) *Reader {
	t.Helper()
	blocks := cache.New(cacheSize)
	r, err := NewReader(f, int64(size), &ReaderOptions{Cache: blocks})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()); blocks.Release() })
	require.Greater(t, r.dataCount, 500)
	return r
}

// walk walks n entries from the first on, or all, and returns the first error.
func walk(t *testing.T, r *Reader, n int) (Probe, error) {
	it := r.NewIter(IterOptions{})
	i := 0
	for ok := it.First(); ok && i < n; ok = it.Next() {
		require.Equal(t, keyOf(i), it.Key().User)
		require.Len(t, it.Value(), 100)
		i++
	}
	if it.Error() == nil {
		require.Equal(t, min(n, runKeys), i)
	}
	return it.Probe, it.Error()
}

func TestALongScanReadsAhead(t *testing.T) {
	for _, c := range []Compression{NoCompression, Snappy, Zstd} {
		r, f := openCounted(t, c, 64<<10)
		p, err := walk(t, r, runKeys)
		require.NoError(t, err)
		require.EqualValues(t, r.props.DataBytes, p.BytesFromDisk)
		require.Equal(t, r.dataCount, p.BlocksFromDisk)
		least := int(r.props.DataBytes) / filePace.most
		require.GreaterOrEqual(t, f.reads, least)
		require.LessOrEqual(t, f.reads, least+filePace.run+5, "single blocks first, then pieces that grow")
		_, blocks := r.cache.Used()
		require.Positive(t, blocks)
		require.LessOrEqual(t, blocks, 64/maxFilledPart+filePace.run, "the rest of the cache is left to others")
	}
}

func TestAShortScanReadsWhatItNeeds(t *testing.T) {
	r, f := openCounted(t, NoCompression, 1<<20)
	blocks := filePace.run
	perBlock := runKeys / r.dataCount
	p, err := walk(t, r, blocks*perBlock-perBlock/2)
	require.NoError(t, err)
	require.Equal(t, blocks, f.reads)
	require.Equal(t, blocks, p.BlocksFromDisk)
	p, err = walk(t, r, blocks*perBlock-perBlock/2)
	require.NoError(t, err)
	require.Equal(t, blocks, f.reads, "they are in the cache now")
	require.Equal(t, blocks, p.BlocksFromCache)
}

// Of a file that the system has in memory scans read the same, and as often.
func TestScansReadWhatTheSystemHas(t *testing.T) {
	for _, c := range []Compression{NoCompression, Snappy, Zstd} {
		cold, f := openCounted(t, c, 64<<10)
		_, err := walk(t, cold, runKeys)
		require.NoError(t, err)
		m := &memoryFile{countedFile: &countedFile{Reader: f.Reader}}
		r := openRun(t, m, int(f.Size()), 64<<10)
		m.reads = 0
		p, err := walk(t, r, runKeys)
		require.NoError(t, err)
		require.Equal(t, f.reads, m.reads)
		require.Equal(t, r.dataCount, p.BlocksFromDisk)
		require.Positive(t, passAround(t, r, &m.fail, IterOptions{}))
		require.Positive(t, passAround(t, r, &m.fail, IterOptions{Sequential: true}))
	}
}

// A full cache takes a block that the system had in memory when it is missed again, and one that had to be waited for
// at once. So do lookups.
func TestAFullCacheTakesWhatIsMissedAgain(t *testing.T) {
	for _, c := range []Compression{NoCompression, Snappy} {
		f := &memoryFile{countedFile: &countedFile{}}
		o := WriterOptions{Compression: c, BlockSize: 1 << 10, Filter: mustParse("none"), ID: 1}
		data := plainFile(t, runKeys, o)
		f.Reader = bytes.NewReader(data)
		r := openRun(t, f, len(data), 64<<10)
		it := r.NewIter(IterOptions{})
		seek := func(key int) (cached bool) {
			before := it.Probe.BlocksFromCache
			require.True(t, it.SeekGE(base.SearchKey(keyOf(key), base.MaxSeqNum)))
			require.Equal(t, keyOf(key), it.Key().User)
			return it.Probe.BlocksFromCache > before
		}
		find := func(key int) (cached bool) {
			var p Probe
			k := keyOf(key)
			_, _, ok, err := r.Find(nil, k, filterpolicy.Hash(k), base.MaxSeqNum, &p)
			require.NoError(t, err)
			require.True(t, ok)
			return p.BlocksFromCache > 0
		}
		for at := range 100 { // fills the cache
			require.False(t, seek(20*at))
		}
		for i, read := range []func(int) bool{seek, find} {
			key := 3000 + 500*i
			require.False(t, read(key))
			require.False(t, read(key), "it was not kept")
			require.True(t, read(key), "it is missed again")
			f.cold = true
			require.False(t, read(key+200))
			require.True(t, read(key+200), "it had to be waited for")
			require.False(t, read(key+300))
			require.True(t, read(key+300), "the read before it had to wait")
			f.cold = false
			require.False(t, read(key+400))
		}
	}
}

// Scans that go on where the one before ended read each block once, also while the cache is full.
func TestPagesOfAScanReadABlockOnce(t *testing.T) {
	f := &memoryFile{countedFile: &countedFile{}}
	data := plainFile(t, runKeys, WriterOptions{BlockSize: 1 << 10, Filter: mustParse("none"), ID: 1})
	f.Reader = bytes.NewReader(data)
	r := openRun(t, f, len(data), 64<<10)
	var it Iter
	var p Probe
	page := func(first int) {
		const keys = 3
		it.Init(r, IterOptions{})
		i := first
		for ok := it.SeekGE(base.SearchKey(keyOf(i), base.MaxSeqNum)); ok && i < first+keys; ok = it.Next() {
			i++
		}
		p.add(&it.Probe)
		it.Release()
	}
	for i := range runKeys / 3 { // each begins with an entry that the one before has seen
		page(3 * i)
	}
	require.LessOrEqual(t, p.BlocksFromDisk, r.dataCount*21/20)
	p = Probe{}
	for i := range runKeys / 3 {
		page(i * 1777 % (runKeys / 3) * 3)
	}
	require.Greater(t, p.BlocksFromDisk, runKeys/3, "no pages")
	require.False(t, it.stride.pages)
}

// What comes after scans that went on where the one before ended has nothing to do with them: a full cache takes what
// it reads when it is missed again.
func TestWhatComesAfterPagesEvictsNothing(t *testing.T) {
	search := func(key int) base.InternalKey { return base.SearchKey(keyOf(key), base.MaxSeqNum) }
	on := func(move func(it *Iter) bool) func(it *Iter, n int) {
		return func(it *Iter, n int) {
			for ; n > 0 && move(it); n-- {
			}
		}
	}
	next, prev := on((*Iter).Next), on((*Iter).Prev)
	for name, move := range map[string]func(it *Iter){
		"first": func(it *Iter) { require.True(t, it.First()); next(it, runKeys) },
		"last":  func(it *Iter) { require.True(t, it.Last()); prev(it, 100) },
		"seek of a cached block": func(it *Iter) {
			before := it.Probe.BlocksFromCache
			require.True(t, it.SeekGE(search(3600)))
			require.Equal(t, before+1, it.Probe.BlocksFromCache)
			next(it, 100)
		},
		"next table": func(it *Iter) { it.Init(it.r, IterOptions{}); require.True(t, it.First()); next(it, 100) },
	} {
		f := &memoryFile{countedFile: &countedFile{}}
		data := plainFile(t, runKeys, WriterOptions{BlockSize: 1 << 10, Filter: mustParse("none"), ID: 1})
		f.Reader = bytes.NewReader(data)
		r := openRun(t, f, len(data), 64<<10)
		it := r.NewIter(IterOptions{})
		for at := range 100 { // fills the cache
			require.True(t, it.SeekGE(search(3000+20*at)))
		}
		for first := 1000; first < 1090; first += 30 {
			require.True(t, it.SeekGE(search(first)))
			next(it, 30)
		}
		require.True(t, it.stride.pages)
		var kept []bool
		for n := range r.slots {
			kept = append(kept, r.slots[n].Filled())
		}
		move(it)
		require.NoError(t, it.Error())
		for n := range r.slots {
			require.False(t, r.slots[n].Filled() && !kept[n], "%s: block %d", name, n)
		}
	}
}

// A store that fits the cache is in it after some passes, though each fills a part.
func TestPassesFillTheCacheByAndBy(t *testing.T) {
	r, f := openCounted(t, Snappy, 2<<20)
	for range 2 * maxFilledPart {
		_, err := walk(t, r, runKeys)
		require.NoError(t, err)
	}
	f.reads = 0
	p, err := walk(t, r, runKeys)
	require.NoError(t, err)
	require.Zero(t, f.reads)
	require.Equal(t, r.dataCount, p.BlocksFromCache)
}

// What lies before a place that cannot be read is delivered, and what lies after can be
// sought.
// passAround has the block in the middle of a file fail, at the offset that fail is set to, and requires that an
// iterator delivers what lies before it, n keys, stops there, and goes on behind it.
func passAround(t *testing.T, r *Reader, fail *int64, o IterOptions) (n int) {
	t.Helper()
	bad := r.dataCount / 2
	offset, length := r.place(location{block: bad})
	*fail = int64(offset) + int64(length)/2
	it := r.NewIter(o)
	for ok := it.First(); ok; ok = it.Next() {
		require.Equal(t, keyOf(n), it.Key().User)
		n++
	}
	require.ErrorIs(t, it.Error(), errFailed)
	require.Equal(t, bad, it.loc.block)
	rest := 0
	for ok := it.SeekGE(base.SearchKey(keyOf(n+20), base.MaxSeqNum)); ok; ok = it.Next() {
		rest++
	}
	require.NoError(t, it.Error())
	require.Equal(t, runKeys-n-20, rest)
	return n
}

func TestAFailedReadAheadHarmsNothingElse(t *testing.T) {
	r, f := openCounted(t, NoCompression, 1<<20)
	n := passAround(t, r, &f.fail, IterOptions{})
	require.InDelta(t, r.dataCount/2*runKeys/r.dataCount, n, 20)
	f.fail = 0
	_, err := walk(t, r, runKeys)
	require.NoError(t, err)
}

// Scans that go through three or four blocks each read most of them at once, when there have been some
// of them; scans of an entry read one block.
func TestASeekReadsWhatSeeksBeforeNeeded(t *testing.T) {
	r, f := openCounted(t, NoCompression, 1<<20)
	perBlock := runKeys / r.dataCount
	var it Iter
	scan := func(first, n int) (reads int) {
		it.Init(r, IterOptions{})
		f.reads = 0
		i := first
		for ok := it.SeekGE(base.SearchKey(keyOf(i), base.MaxSeqNum)); ok && i < first+n; ok = it.Next() {
			require.Equal(t, keyOf(i), it.Key().User)
			i++
		}
		require.NoError(t, it.Error())
		require.Equal(t, first+n, i)
		it.Release()
		return f.reads
	}
	const scans = 20
	at := 0
	run := func(n int) (reads int) {
		for range scans {
			reads += scan(at, n)
			at += 6 * perBlock // where nothing is in the cache
		}
		return reads
	}
	run(3 * perBlock)
	require.LessOrEqual(t, run(3*perBlock), 2*scans, "of three or four blocks each")
	run(1)
	require.LessOrEqual(t, run(1), scans)
	require.Less(t, it.stride.mean, 1<<8)
}
