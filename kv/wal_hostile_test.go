package kv

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/hostile"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/replay"
	"github.com/siftkv/siftkv/internal/scale"
)

// replayBound is for the replay of records with memtables of 64 KiB: an entry of three bytes
// takes a node of a hundred, a range tombstone of five some fragments.
var replayBound = hostile.Bound{PerByte: 512, Fixed: 1 << 20}

// replayed replays records as Open does, and makes of the range tombstones what the
// next flush makes.
func replayed(tb testing.TB, records [][]byte) (p replay.Replayer, set *rangedel.Set) {
	tb.Helper()
	p = (&DB{opts: Options{MemtableSize: 64 << 10}}).replayer()
	for _, r := range records {
		_ = p.Apply(r, bytes.Clone) // hostile ones are refused
	}
	var tombs []rangedel.Tombstone
	for _, m := range p.Mems {
		tombs = m.Tombstones().AppendAll(tombs)
	}
	return p, rangedel.NewSet(rangedel.Newest(tombs))
}

func requireReplayBounded(tb testing.TB, records ...[]byte) {
	tb.Helper()
	size := 0
	for _, r := range records {
		size += len(r)
	}
	replayBound.Require(tb, size, func() { replayed(tb, records) })
}

// trims are range deletes from the first key on, of which each reaches further than the one
// before: a queue whose head is deleted.
func trims(tb testing.TB, n, perBatch int) (records [][]byte) {
	tb.Helper()
	b, seq := &Batch{}, base.SeqNum(1)
	for i := range n {
		require.NoError(tb, b.DeleteRange(nil, binary.BigEndian.AppendUint32(nil, uint32(i+1))))
		if (i+1)%perBatch == 0 {
			records = append(records, slices.Clone(b.repr.Seal(seq)))
			b, seq = &Batch{}, base.SeqNum(i+2)
		}
	}
	return records
}

func TestLogBombsOfRangeDeletes(t *testing.T) {
	scale.OneGoroutine(t, "a replay in one goroutine")
	for _, perBatch := range []int{1, 10, 10_000} {
		records := trims(t, 20_000, perBatch)
		requireReplayBounded(t, records...)
		_, set := replayed(t, records)
		require.Equal(t, 1, set.Len(), "the last covers all others")
		require.Equal(t, base.SeqNum(20_000), set.Cover([]byte{0}, base.MaxSeqNum))

		slices.Reverse(records) // now each reaches less far, and the one before shows past it
		for i, r := range records {
			binary.LittleEndian.PutUint64(r, uint64(i*perBatch+1))
		}
		requireReplayBounded(t, records...)
	}
}

func TestLogBombsOfSmallEntries(t *testing.T) {
	b := &Batch{}
	for range 20_000 {
		require.NoError(t, b.Set(nil, nil))
	}
	requireReplayBounded(t, b.repr.Seal(1))
	var records [][]byte
	for i := range 5000 {
		b := &Batch{}
		require.NoError(t, b.Set(nil, nil))
		records = append(records, slices.Clone(b.repr.Seal(base.SeqNum(i+1))))
	}
	requireReplayBounded(t, records...)
	// Each takes a memtable nearly by itself.
	records = records[:0]
	for i := range 100 {
		b := &Batch{}
		require.NoError(t, b.Set(nil, make([]byte, 40<<10)))
		records = append(records, slices.Clone(b.repr.Seal(base.SeqNum(i+1))))
	}
	requireReplayBounded(t, records...)
}

func TestHostileBatches(t *testing.T) {
	for _, b := range []*Batch{goldenBatch(t), kindsBatch(t)} {
		for mutant := range hostile.Mutants(slices.Clone(b.repr.Seal(77)), 1000) {
			requireReplayBounded(t, mutant)
		}
	}
}

func FuzzHostileBatch(f *testing.F) {
	f.Add(slices.Clone(goldenBatch(f).repr.Seal(77)))
	f.Add(slices.Clone(kindsBatch(f).repr.Seal(9)))
	f.Fuzz(func(t *testing.T, record []byte) { requireReplayBounded(t, record) })
}

func TestHostileBackupMarks(t *testing.T) {
	for _, b := range [][]byte{nil, []byte("SIFTMRK\n"), make([]byte, 52), slices.Repeat([]byte{0xff}, 1000)} {
		hostile.Bound{PerByte: 4, Fixed: 8 << 10}.Require(t, len(b),
			func() { _ = new(BackupMark).UnmarshalBinary(b) })
	}
}

// What is replayed is what was written, however many range deletes there are between the
// points.
func TestReplayOfManyRangeDeletesLosesNothing(t *testing.T) {
	var records [][]byte
	seq := base.SeqNum(1)
	want := map[uint32]bool{}
	for i := range uint32(3000) {
		b := &Batch{}
		key := i * 7919 % 500
		require.NoError(t, b.Set(binary.BigEndian.AppendUint32(nil, key), nil))
		want[key] = true
		lo, hi := i*31%500, i*31%500+i%9
		require.NoError(t, b.DeleteRange(binary.BigEndian.AppendUint32(nil, lo),
			binary.BigEndian.AppendUint32(nil, hi)))
		for k := lo; k < hi; k++ {
			delete(want, k)
		}
		records = append(records, slices.Clone(b.repr.Seal(seq)))
		seq += base.SeqNum(b.Len())
	}
	p, set := replayed(t, records)
	got := map[uint32]bool{}
	for key := range uint32(500) {
		user := binary.BigEndian.AppendUint32(nil, key)
		newest := base.SeqNum(0)
		for _, m := range p.Mems {
			it := m.NewIter()
			if it.SeekGE(base.SearchKey(user, base.MaxSeqNum)) && string(it.Key().User) == string(user) {
				newest = max(newest, it.Key().SeqNum())
			}
		}
		if newest > set.Cover(user, base.MaxSeqNum) {
			got[key] = true
		}
	}
	require.Equal(t, want, got)
}
