package diskcache

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/hostile"
	"github.com/siftkv/siftkv/internal/vfs"
)

// sampleSegment is a segment as a cache writes it, of two objects, 4596 and 5000 bytes long.
func sampleSegment(t testing.TB) []byte {
	mem := vfs.NewMem()
	c := Open(mem, "cache", Options{Capacity: 1 << 20, PageSize: testPage})
	data := bytes.Repeat([]byte("0123456789"), 500)
	c.Flush()
	c.Add("sst/000001.sst", bytes.NewReader(data), testPage+500)
	c.Add("sst/2", bytes.NewReader(data[1:]), 4)
	c.Flush()
	require.NoError(t, c.Close())
	f, err := mem.Open(filepath.Join("cache", segmentName(1)))
	require.NoError(t, err)
	size, err := f.Size()
	require.NoError(t, err)
	b := make([]byte, size)
	_, err = f.ReadAt(b, 0)
	require.NoError(t, err)
	return b
}

func TestGoldenSegments(t *testing.T) {
	golden.File(t, "testdata/segment.golden", sampleSegment(t))
}

// What the golden file has can be read, with its index and without.
func TestTheGoldenSegmentIsRead(t *testing.T) {
	data := sampleSegment(t)
	for _, cut := range []int{0, 1} {
		mem := vfs.NewMem()
		require.NoError(t, mem.MkdirAll("cache"))
		rewriteNew(t, mem, "cache/pages-00000001", data[:len(data)-cut])
		c := openCache(t, mem, Options{})
		require.Equal(t, 3, c.Metrics().Pages)
		p := make([]byte, 600)
		n, err := c.ReadAt(t.Context(), "sst/000001.sst", testPage+500, p, testPage-100, nil)
		require.NoError(t, err)
		require.Equal(t, 600, n)
		require.Equal(t, bytes.Repeat([]byte("6789012345"), 60), p)
		_, err = c.ReadAt(t.Context(), "sst/2", 4, p[:4], 0, nil)
		require.NoError(t, err)
		require.Equal(t, "1234", string(p[:4]))
		require.NoError(t, c.Close())
	}
}

// A decoder may allocate what the file has, in entries that are as large as theirs are on disk, and a page at a time.
var segmentBound = hostile.Bound{PerByte: 16, Fixed: 3 << 20}

// requireSegmentHarmless opens a cache on a file, and reads everything that the sample has through it: right bytes,
// and little memory.
func requireSegmentHarmless(tb testing.TB, b []byte) {
	tb.Helper()
	object := bytes.Repeat([]byte("0123456789"), 500)
	segmentBound.Require(tb, len(b), func() {
		mem := vfs.NewMem()
		if mem.MkdirAll("cache") != nil {
			return
		}
		f, err := mem.Create(filepath.Join("cache", segmentName(1)))
		if err != nil {
			return
		}
		_, _ = f.Write(b)
		_ = f.Close()
		c := Open(mem, "cache", Options{Capacity: 1 << 20, PageSize: testPage})
		c.Flush()
		p := make([]byte, 5000)
		for off := range []int64{0, testPage} {
			part := p[:testPage+500-off]
			n, err := c.ReadAt(tb.Context(), "sst/000001.sst", testPage+500, part, int64(off),
				bytes.NewReader(object).ReadAt)
			if n != len(part) || err != nil || !bytes.Equal(part, object[off:off+n]) {
				tb.Errorf("wrong: %d bytes, %v", n, err)
			}
		}
		_ = c.Close()
	})
}

func TestHostileSegments(t *testing.T) {
	data := sampleSegment(t)
	for mutant := range hostile.Mutants(data, 1000) {
		requireSegmentHarmless(t, mutant)
	}
	// Indexes whose sums are right send reads anywhere.
	index := indexTrailer + 3*indexEntry
	pages, err := decodeIndex(data[len(data)-index:], int64(len(data)))
	require.NoError(t, err)
	for _, position := range []uint32{0, segmentHeader, segmentHeader + 1, uint32(len(data)), 1<<32 - 1} {
		for _, length := range []uint32{0, 1, pages[0].length, pages[1].length, 1<<32 - 1} {
			lies := slices.Clone(pages)
			lies[0].position, lies[0].length = position, length
			requireSegmentHarmless(t, appendIndex(slices.Clone(data[:len(data)-index]), lies))
		}
	}
	// So do headers of pages, in files without an index.
	for _, name := range []uint32{0, 1, 14, maxPageName, maxPageName + 1, 1<<32 - 1} {
		for _, length := range []uint32{0, 1, testPage, maxPageSize, maxPageSize + 1, 1<<32 - 1} {
			lie := slices.Clone(data[:len(data)-index])
			page := lie[segmentHeader:]
			binary.LittleEndian.PutUint32(page[8:], name)
			binary.LittleEndian.PutUint32(page[12:], length)
			if end := int64(pageHeader) + int64(name) + int64(length); end <= int64(len(page)) {
				binary.LittleEndian.PutUint64(page, xxhash.Sum64(page[8:end]))
			}
			requireSegmentHarmless(t, lie)
		}
	}
}

// Pages in each other's places, with sums and an index that fit.
func TestHostileIndexesOfOtherPages(t *testing.T) {
	data := sampleSegment(t)
	index := indexTrailer + 3*indexEntry
	pages, err := decodeIndex(data[len(data)-index:], int64(len(data)))
	require.NoError(t, err)
	for i := range pages {
		lies := slices.Clone(pages)
		for j := range lies {
			lies[j].key = pages[(i+j)%len(pages)].key
		}
		requireSegmentHarmless(t, appendIndex(slices.Clone(data[:len(data)-index]), lies))
	}
	long := appendPage(nil, pageKey{"sst/000001.sst", 0}, make([]byte, 100))
	lie := append(slices.Clone(data[:segmentHeader]), long...)
	requireSegmentHarmless(t, appendIndex(lie, []listedPage{{pages[0].key, segmentHeader, uint32(len(long))}}))
}

func FuzzHostileSegment(f *testing.F) {
	data := sampleSegment(f)
	f.Add(data)
	f.Add(data[:len(data)-1])
	f.Add(data[:segmentHeader])
	f.Fuzz(func(t *testing.T, b []byte) { requireSegmentHarmless(t, b) })
}
