package sstable

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/blockindex"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/scale"
)

// separators returns n separators in order, of so many bytes as length says, which have
// little in common.
func separators(n int, length func(i int) int) [][]byte {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	all := make([][]byte, n)
	for i := range all {
		all[i] = fmt.Appendf(nil, "%08d", i)
		for len(all[i]) < length(i) {
			all[i] = append(all[i], byte(rng.Uint32()))
		}
	}
	return all
}

func TestIndexLeavesHaveABoundInBytes(t *testing.T) {
	scale.OneGoroutine(t, "it is about sizes")
	const n = 20_000
	for _, c := range []struct {
		name    string
		length  func(i int) int
		largest int // bytes of a leaf, and less than one entry more
		most    int // blocks of a leaf
		least   int // where leaves are not smaller for the partition
	}{
		{"short", func(int) int { return 16 }, leafSize, leafSize / (20 + 8), 300},
		{"long", func(int) int { return 1000 }, leafSize, leafSize/1000 + 1, 10},
		{"short, then long", func(i int) int { return 12 + 300*(2*i/n) }, maxLeafSize, 1000, 100},
		{"long, then short", func(i int) int { return 12 + 300*(2*(n-i)/n) }, leafSize, 60, 40},
		{"growing", func(i int) int { return 12 + i/40 }, maxLeafSize, 500, 60},
		{"one that is huge", func(i int) int {
			if i == n/2 {
				return 300 << 10
			}
			return 16
		}, 600 << 10, leafSize / 24, 300},
	} {
		all := separators(n, c.length)
		for _, partition := range []int{4 << 10, leafSize, 256 << 10} {
			what := fmt.Sprintf("%s, partition %d", c.name, partition)
			w := indexWriter{partition: partition}
			for i, s := range all {
				w.add(s, uint64(100*i+100))
			}
			w.finish()
			require.Positive(t, w.perLeaf, what)
			require.LessOrEqual(t, w.perLeaf, c.most, what)
			if partition >= leafSize {
				require.GreaterOrEqual(t, w.perLeaf, c.least, what)
			}
			require.Zero(t, w.leaf.Len())
			require.Equal(t, w.bytes+w.leaf.Size(), w.size())
			block, separator := 0, []byte(nil)
			for i, data := range w.leaves {
				leaf, err := blockindex.Decode(data)
				require.NoError(t, err)
				require.LessOrEqual(t, len(data), c.largest+1100, what)
				require.Equal(t, block, leaf.First())
				if i < len(w.leaves)-1 {
					require.Equal(t, w.perLeaf, leaf.Len(), what)
				}
				for j := range leaf.Len() {
					offset, length := leaf.Block(j)
					separator = leaf.AppendSeparator(separator[:0], j)
					if !bytes.Equal(separator, all[block]) || offset != uint64(100*block) || length != 100 {
						t.Fatalf("%s: block %d of leaf %d", what, j, i)
					}
					block++
				}
			}
			require.Equal(t, n, block, what)
		}
	}
}

// A few huge separators side by side do not make small leaves of all others, of which every
// reader would hold the top.
func TestAFewHugeSeparatorsLeaveTheTopIndexSmall(t *testing.T) {
	scale.OneGoroutine(t, "a count of bytes")
	const n = 100_000
	w := indexWriter{partition: defaultIndexPartition}
	for i, s := range separators(n, func(i int) int { return 16 + 50_000*(i/(n-20)) }) {
		w.add(s, uint64(100*i+100))
	}
	w.finish()
	require.LessOrEqual(t, w.largest, hugeLeafSize)
	var top blockindex.Builder
	for i, data := range w.leaves {
		leaf := blockindex.View(data)
		top.Add(leaf.AppendSeparator(nil, leaf.Len()-1), uint64(i+1))
	}
	require.Less(t, top.Size(), w.size()/8)
	require.Less(t, top.Size(), 2*w.largest)
}

// A file whose keys become longer has leaves that a small cache holds.
func TestLeavesOfAFileWhoseKeysGrow(t *testing.T) {
	var buf bytes.Buffer
	w := NewWriter(&buf, &WriterOptions{BlockSize: 64, IndexPartition: 16 << 10, Filter: mustParse("none"), ID: 1})
	var keys [][]byte
	for _, k := range separators(1500, func(i int) int { return 20 + 500*(3*i/1500) }) {
		for i := range byte(4) { // to tell these apart takes the whole key
			keys = append(keys, append(bytes.Clone(k), i))
		}
	}
	for _, k := range keys {
		require.NoError(t, w.Add(base.MakeKey(k, 0, base.KindSet), []byte("value")))
	}
	info, err := w.Finish()
	require.NoError(t, err)
	r := openBytes(t, buf.Bytes(), &ReaderOptions{CacheSize: 512 << 10})
	require.NoError(t, r.Verify())
	require.Greater(t, info.IndexBytes, uint64(400<<10))
	for i := range r.index.Len() {
		_, length := r.index.Block(i)
		require.LessOrEqual(t, length, maxLeafSize+trailerSize, "leaf %d", i)
	}
	for _, k := range keys {
		v, err := r.get(k)
		require.NoError(t, err)
		require.Equal(t, "value", string(v))
	}
}

// What huge keys have in common is in the index once, or once in a leaf, and not once for each block.
func TestTheIndexOfKeysThatBeginAlikeIsSmall(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of bytes")
	const long, n = 20_000, 1500
	start := bytes.Repeat([]byte("a"), long)
	key := func(i int) []byte { return fmt.Appendf(bytes.Clone(start), "%08d", i) }
	for _, c := range []struct{ partition, leaves int }{{0, 0}, {32 << 10, 3}} {
		var buf bytes.Buffer
		w := NewWriter(&buf, &WriterOptions{IndexPartition: c.partition, ID: 1})
		for i := range n {
			require.NoError(t, w.Add(base.MakeKey(key(2*i), 0, base.KindSet), []byte("value")))
		}
		info, err := w.Finish()
		require.NoError(t, err)
		require.EqualValues(t, c.leaves, info.IndexLeaves)
		require.Less(t, info.IndexBytes, uint64((c.leaves+2)*long+40*n))
		r := openBytes(t, buf.Bytes(), nil)
		require.NoError(t, r.Verify())
		for i := 0; i < n; i += 7 {
			v, err := r.get(key(2 * i))
			require.NoError(t, err)
			require.Equal(t, "value", string(v))
			_, err = r.get(key(2*i + 1))
			require.ErrorIs(t, err, errAbsent)
		}
	}
}
