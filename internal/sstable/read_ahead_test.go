package sstable

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/scale"
)

// A partFile is a file that is read in parts. It notes its reads, and fails those that touch the byte at fail.
type partFile struct {
	*bytes.Reader
	part int
	fail int64 // 0: none

	mu    sync.Mutex
	reads []int            // lengths
	begun *sync.Cond       // of mu; reads has grown
	hold  map[int]chan any // reads that wait until the channel is closed, by their number
}

func (f *partFile) PartSize() int { return f.part }

func (f *partFile) ReadAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	hold := f.hold[len(f.reads)]
	f.reads = append(f.reads, len(p))
	f.begun.Broadcast()
	f.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if f.fail > 0 && off <= f.fail && f.fail < off+int64(len(p)) {
		return 0, errFailed
	}
	return f.Reader.ReadAt(p, off)
}

// took returns how many reads there were since it was last called.
func (f *partFile) took() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.reads)
	f.reads = nil
	return n
}

const partSize = 64 << 10

// openParts opens a file of runKeys keys in blocks of 1 KiB that is read in parts.
func openParts(t *testing.T, o WriterOptions, cacheSize int64) (*Reader, *partFile) {
	o.BlockSize, o.Filter, o.ID = 1<<10, mustParse("none"), 1
	data := plainFile(t, runKeys, o)
	f := &partFile{Reader: bytes.NewReader(data), part: partSize}
	f.begun = sync.NewCond(&f.mu)
	r := openRun(t, f, len(data), cacheSize)
	f.took()
	return r, f
}

// scan goes through a whole file and returns how many reads that took.
func (f *partFile) scan(t *testing.T, r *Reader, o IterOptions) int {
	t.Helper()
	it, n := r.NewIter(o), 0
	for ok := it.First(); ok; ok = it.Next() {
		require.Equal(t, keyOf(n), it.Key().User)
		n++
	}
	require.NoError(t, it.Error())
	require.Equal(t, runKeys, n)
	return f.took()
}

// parts is how many parts the blocks of a file have, and the leaves of its index.
func (r *Reader) parts() (data, leaves int) {
	at := func(n, size int) int { return (n + size - 1) / size }
	if r.leafBlocks > 0 {
		leaves = at(int(r.index.End()-r.props.DataBytes), partSize)
	}
	return at(int(r.props.DataBytes), partSize), leaves
}

func TestAPassReadsParts(t *testing.T) {
	for _, c := range []Compression{NoCompression, Snappy, Zstd}[scale.Fewer(0, 2):] {
		for _, partition := range []int{0, 256, 1000} {
			for _, cacheSize := range []int64{-1, 64 << 10, 8 << 20} {
				t.Run(fmt.Sprint(c, partition, cacheSize), func(t *testing.T) {
					r, f := openParts(t, WriterOptions{Compression: c, IndexPartition: partition}, cacheSize)
					require.Equal(t, partition > 0, r.leafBlocks > 0)
					data, leaves := r.parts()
					require.Equal(t, data+leaves, f.scan(t, r, IterOptions{Sequential: true}))
					// A block, and pieces of a sixteenth and a quarter of a part, before whole parts.
					require.LessOrEqual(t, f.scan(t, r, IterOptions{}), 1+2+data+leaves)
					require.NoError(t, r.Verify())
					require.LessOrEqual(t, f.took(), data+2*(leaves+1)+1, "and the tail, for which no length is known")
				})
			}
		}
	}
}

// What is in the cache ends no part: a scan beside it costs no more.
func TestAPassOverHalfOfTheBlocksReadsParts(t *testing.T) {
	r, f := openParts(t, WriterOptions{Compression: Snappy}, 8<<20)
	random := rand.New(rand.NewPCG(1, 2))
	for range runKeys / 12 {
		k := keyOf(random.IntN(runKeys))
		_, _, ok, err := r.Find(nil, k, filterpolicy.Hash(k), base.MaxSeqNum, new(Probe))
		require.NoError(t, err)
		require.True(t, ok)
	}
	require.Greater(t, f.took(), r.dataCount/4)
	data, _ := r.parts()
	require.LessOrEqual(t, f.scan(t, r, IterOptions{}), 3+data)
}

func TestALookupReadsABlock(t *testing.T) {
	r, f := openParts(t, WriterOptions{Compression: NoCompression}, -1)
	for i := range 50 {
		k := keyOf(i * 100)
		_, _, ok, err := r.Find(nil, k, filterpolicy.Hash(k), base.MaxSeqNum, new(Probe))
		require.NoError(t, err)
		require.True(t, ok)
		it := r.NewIter(IterOptions{})
		require.True(t, it.SeekGE(base.SearchKey(k, base.MaxSeqNum)))
	}
	require.Less(t, slices.Max(f.reads), 2<<10)
	require.Equal(t, 100, f.took())
}

// The second part is under way before anything of the first was used, and the third while the second is.
func TestTheNextPartIsReadMeanwhile(t *testing.T) {
	r, f := openParts(t, WriterOptions{Compression: NoCompression}, -1)
	second := make(chan any)
	f.hold = map[int]chan any{1: second}
	it := r.NewIter(IterOptions{Sequential: true})
	require.True(t, it.First())
	f.wait(2)
	for i := 1; i < runKeys/20; i++ { // of a twelfth
		require.True(t, it.Next())
	}
	require.Len(t, f.reads, 2)
	close(second)
	for range runKeys / 20 {
		require.True(t, it.Next())
	}
	f.wait(3)
	it.Release()
}

// wait waits for n reads to have begun.
func (f *partFile) wait(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.reads) < n {
		f.begun.Wait()
	}
}

// As of an ordinary file: what lies before a place that cannot be read is delivered, and what lies after sought.
func TestAPartThatFailsHarmsNothingElse(t *testing.T) {
	for _, o := range []IterOptions{{}, {Sequential: true}} {
		r, f := openParts(t, WriterOptions{Compression: NoCompression}, -1)
		passAround(t, r, &f.fail, o)
	}
}

// Moves of all kinds, on parts smaller than a block and larger than the file, see what they see in a file.
func TestMovesInPartsSeeTheSame(t *testing.T) {
	for _, part := range []int{1, 100, 1 << 10, 5000, 100 << 10, 8 << 20} {
		for _, partition := range []int{0, 300} {
			r, f := openParts(t, WriterOptions{Compression: Snappy, IndexPartition: partition}, 32<<10)
			r.part, f.part = part, part
			random := rand.New(rand.NewPCG(uint64(part), 3))
			for _, o := range []IterOptions{{}, {Sequential: true}} {
				it := r.NewIter(o)
				for range scale.Count(25, 60) {
					at := random.IntN(runKeys)
					require.True(t, it.SeekGE(base.SearchKey(keyOf(at), base.MaxSeqNum)))
					for range random.IntN(300) {
						require.Equal(t, keyOf(at), it.User())
						if at++; at == runKeys {
							require.False(t, it.Next())
							break
						}
						require.True(t, it.Next())
					}
					if at == runKeys {
						continue
					}
					for range random.IntN(20) {
						require.Equal(t, keyOf(at), it.User())
						if at--; at < 0 {
							require.False(t, it.Prev())
							break
						}
						require.True(t, it.Prev())
					}
				}
				require.NoError(t, it.Error())
				it.Release()
				require.LessOrEqual(t, it.Kept(), 600<<10)
			}
		}
	}
}
