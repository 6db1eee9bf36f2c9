package sstable

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/scale"
)

// bigLeafFile is a file of n keys whose index leaves have 16 KiB.
func bigLeafFile(t *testing.T, n int) []byte {
	return plainFile(t, n, WriterOptions{BlockSize: 128, IndexPartition: leafSize, Filter: mustParse("none"), ID: 1})
}

func TestALeafThatTheCacheCannotKeepIsReadOnce(t *testing.T) {
	scale.OneGoroutine(t, "a count of blocks that one goroutine reads")
	const n = 20_000
	data := bigLeafFile(t, n)
	for _, cacheSize := range []int64{32 << 10, 1 << 20, -1} {
		r := openBytes(t, data, &ReaderOptions{CacheSize: cacheSize})
		leaves := r.index.Len()
		require.Greater(t, leaves, 10)
		rng := rand.New(rand.NewPCG(1, 1))
		var p Probe
		for range 2000 {
			key := keyOf(rng.IntN(n))
			_, _, ok, err := r.Find(nil, key, filterpolicy.Hash(key), base.MaxSeqNum, &p)
			require.NoError(t, err)
			require.True(t, ok)
		}
		it := r.NewIter(IterOptions{})
		for i := range n {
			require.True(t, i == 0 && it.First() || i > 0 && it.Next())
			require.Equal(t, keyOf(i), it.Key().User)
		}
		require.True(t, it.SeekLT(base.SearchKey(keyOf(n/2), base.MaxSeqNum)))
		require.Equal(t, keyOf(n/2-1), it.Key().User)
		_, index := r.PinnedBytes()
		top := int64(r.index.Size()) + 8*int64(len(r.slots))
		switch {
		case cacheSize < 0:
			require.Equal(t, 2000, p.IndexLeavesFromDisk, "nothing is to be kept")
			require.Equal(t, top, index)
		case cacheSize == 32<<10:
			require.Equal(t, leaves, p.IndexLeavesFromDisk)
			require.Zero(t, it.Probe.IndexLeavesFromDisk)
			require.Equal(t, top+int64(r.props.IndexBytes)-int64(r.props.index.length)-int64(leaves+1)*trailerSize,
				index, "they are counted")
		default:
			require.Less(t, p.IndexLeavesFromDisk, 2*leaves, "the cache keeps them")
			require.Equal(t, top, index)
		}
		require.NoError(t, r.Verify())
	}
}

func TestALeafThatTheCacheCannotKeepIsReadOnceForAll(t *testing.T) {
	data := bigLeafFile(t, 5000)
	synctest.Test(t, func(t *testing.T) {
		f := &gatedFile{Reader: bytes.NewReader(data), gate: make(chan error)}
		r, err := NewReader(f, int64(len(data)), &ReaderOptions{CacheSize: 32 << 10})
		require.NoError(t, err)
		f.limit = int64(r.index.End())
		wait := findTogether(r, 10, 1234)
		require.EqualValues(t, 1, f.reads.Load())
		f.gate <- errFailed
		_, errs := wait()
		require.Len(t, errs, 10, "all waited for the read that failed")
		require.ErrorIs(t, errs[0], errFailed)
		wait = findTogether(r, 10, 1234)
		require.EqualValues(t, 2, f.reads.Load())
		close(f.gate)
		p, errs := wait()
		require.Empty(t, errs)
		require.Equal(t, 1, p.IndexLeavesFromDisk)
		f.reads.Store(0)
		wait = findTogether(r, 10, 1234)
		p, errs = wait()
		require.Empty(t, errs)
		require.Zero(t, p.IndexLeavesFromDisk)
		require.NoError(t, r.Close())
	})
}

func TestADamagedBigLeafIsAnError(t *testing.T) {
	data := bigLeafFile(t, 5000)
	offset, length := openBytes(t, data, nil).index.Block(0)
	data[int(offset)+length/2] ^= 1
	r := openBytes(t, data, &ReaderOptions{CacheSize: 32 << 10})
	for range 3 {
		_, err := r.get(keyOf(0))
		require.ErrorIs(t, err, ErrCorruption)
		require.ErrorContains(t, err, "index leaf")
	}
	data[int(offset)+length/2] ^= 1
	_, err := r.get(keyOf(0))
	require.NoError(t, err)
}
