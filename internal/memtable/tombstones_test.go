package memtable

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// TestReadersBesideRangeDeletes looks keys up as of any moment while ranges are deleted, one
// after the other, round and round.
func TestReadersBesideRangeDeletes(t *testing.T) {
	const keys, writes = 50, 50 * 40
	key := func(i int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(i)) }
	m := New(writes * TombstoneSize(2, 3))
	var visible atomic.Uint64
	var readers sync.WaitGroup
	for reader := range 3 {
		readers.Go(func() {
			for n := reader; visible.Load() < writes; n++ {
				at := visible.Load()
				if n%2 == 0 {
					at = uint64(n) % (at + 1)
				}
				k := uint64(n % keys)
				want := uint64(0) // key k is deleted by writes k+1, k+1+keys, ...
				if at > k {
					want = (at-k-1)/keys*keys + k + 1
				}
				if got := m.Tombstones().Cover(key(int(k)), base.SeqNum(at)); got != base.SeqNum(want) {
					t.Errorf("key %d as of %d: %d, want %d", k, at, got, want)
					return
				}
			}
		})
	}
	for seq := range writes {
		w := &batchrepr.Writer{}
		w.Add(base.KindRangeDelete, key(seq%keys), rangedel.AppendEnd(nil, key(seq%keys+1)))
		require.NoError(t, m.Apply(w.Seal(base.SeqNum(seq+1))))
		visible.Store(uint64(seq + 1))
	}
	readers.Wait()
	require.LessOrEqual(t, m.Size(), int64(writes*TombstoneSize(2, 3)+64))
}
