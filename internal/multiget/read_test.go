package multiget

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/values"
)

// slowBlocks returns a store of one table with n keys, each in a block of its own with versions operands, that
// a device has: a read takes a second.
func slowBlocks(t *testing.T, n, versions int) (*store, []*Key) {
	var run []entry
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%04d", i))
		for seq := versions; seq > 0; seq-- {
			run = append(run, entry{names[i], base.SeqNum(seq), base.KindMerge})
		}
	}
	s := newStore(t, sstable.WriterOptions{BlockSize: 64, Compression: sstable.NoCompression}, [][]entry{run})
	s.tables.Options.CacheSize = 1 << 20
	_, err := s.version.Runs[0].At(0).Open(&s.tables)
	require.NoError(t, err)
	s.reads.Store(0)
	s.delay = time.Second
	return s, keysOf(names...)
}

// Where the system begins no read without a wait, goroutines wait side by side after the first read was slow.
func TestSlowReadsAreSharedOut(t *testing.T) {
	for _, c := range []struct{ keys, seconds int }{
		{1, 1}, {2, 2}, {3, 2}, {1 + values.MaxReads, 2}, {2 + values.MaxReads, 3}, {1 + 2*values.MaxReads, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, keys := slowBlocks(t, c.keys, 1)
			search, got := s.search(base.MaxSeqNum)
			began := time.Now()
			search.Find(slices.Clone(keys))
			require.Equal(t, time.Duration(c.seconds)*time.Second, time.Since(began), "%d keys", c.keys)
			require.EqualValues(t, c.keys, s.reads.Load())
			require.Len(t, got, c.keys)
		})
	}
}

// What Answer reads after a key's block, older operands in the next one, says nothing of how blocks are read.
func TestOlderOperandsAreNoReadsOfABlockReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, keys := slowBlocks(t, 4, 2)
		search, _ := s.search(base.MaxSeqNum)
		older := 0
		search.Answer = func(k *Key, r *sstable.Reader, found *sstable.Lookup) (bool, error) {
			require.Nil(t, found.Probe.Wait)
			_, trailer, ok, err := r.Find(nil, k.Key, filterpolicy.Hash(k.Key), found.Trailer.SeqNum()-1, &found.Probe)
			require.NoError(t, err)
			require.True(t, ok)
			require.EqualValues(t, 1, trailer.SeqNum())
			older++
			return true, nil
		}
		search.Find(keys)
		require.Equal(t, 4, older)
		require.EqualValues(t, 8, s.reads.Load())
		require.NotEmpty(t, search.readers)
		for _, r := range search.readers {
			require.Zero(t, r.since)
		}
	})
}

// A block is claimed by one goroutine only, and claimAll leaves none.
func TestClaims(t *testing.T) {
	t.Parallel()
	s := &sharedBlocks{blocks: make([]block, 5)}
	require.Same(t, &s.blocks[0], s.claim())
	require.Same(t, &s.blocks[1], s.claim())
	require.Len(t, s.claimAll(), 3)
	require.Empty(t, s.claimAll())
	require.Nil(t, s.claim())
}
