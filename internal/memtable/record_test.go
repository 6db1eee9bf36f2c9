package memtable

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// drawRecord draws a record, of few keys or of many.
func drawRecord(t *rapid.T, seq base.SeqNum) []byte {
	w := &batchrepr.Writer{}
	prefix := rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "prefix")
	keys := rapid.SliceOfN(rapid.SliceOfN(rapid.ByteRange('a', 'c'), 0, 12), 1, 40).Draw(t, "keys")
	for range rapid.IntRange(1, 200).Draw(t, "entries") {
		key := slices.Concat(prefix, keys[rapid.IntRange(0, len(keys)-1).Draw(t, "key")])
		value := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "value")
		switch kind := rapid.SampledFrom([]base.Kind{base.KindSet, base.KindSet, base.KindDelete, base.KindMerge,
			base.KindSetTTL, base.KindRangeDelete}).Draw(t, "kind"); kind {
		case base.KindRangeDelete:
			w.Add(kind, key, rangedel.AppendEnd(nil, append(key, value...)))
		case base.KindMerge:
			w.Add(kind, key, fmt.Append(nil, len(value)))
		case base.KindSetTTL:
			w.Add(kind, key, base.AppendExpiry(nil, 7), value...)
		default:
			w.Add(kind, key, value)
		}
	}
	return w.Seal(seq)
}

// fillOf returns a memtable of its own for a record.
func fillOf(tb require.TestingT, record []byte) *Memtable {
	o, err := Sort(record)
	require.NoError(tb, err)
	m := NewForRecord(o)
	require.NoError(tb, m.Fill(record, o))
	return m
}

// A memtable over a record answers as one that the record was applied to.
func TestAMemtableOverARecord(t *testing.T) {
	t.Parallel()
	property.Check(t, func(t *rapid.T) {
		record := drawRecord(t, 100)
		size, _, err := Measure(record)
		require.NoError(t, err)
		want := New(size + Slack)
		require.NoError(t, want.Apply(record))
		m := fillOf(t, record)
		require.Equal(t, contents(t, want), contents(t, m))
		require.Equal(t, want.Len(), m.Len())
		require.Equal(t, want.Empty(), m.Empty())
		require.Equal(t, want.Tombstones().AppendAll(nil), m.Tombstones().AppendAll(nil))
		// It takes no entries, but folds.
		require.False(t, m.Reserve(1))
		require.NoError(t, m.FoldOperands(record, count))
		requireFolds(t, m, count)
		it, wantIt := m.NewIter(), want.NewIter()
		for e, err := range batchrepr.All(record) {
			require.NoError(t, err)
			for _, user := range [][]byte{e.Key.User, append(slices.Clip(e.Key.User), 0)} {
				at := base.SeqNum(rapid.IntRange(99, 301).Draw(t, "at"))
				k := base.SearchKey(user, at)
				require.Equal(t, wantIt.SeekGE(k), it.SeekGE(k))
				require.Equal(t, wantIt.Key(), it.Key())
				require.Equal(t, wantIt.SeekLT(k), it.SeekLT(k))
				require.Equal(t, wantIt.Key(), it.Key())
				value, trailer, ok := want.Get(user, filterpolicy.Hash(user), at)
				got, gotTrailer, gotOK := m.Get(user, filterpolicy.Hash(user), at)
				require.Equal(t, ok, gotOK)
				if gotTrailer.Kind() == KindFold {
					require.Equal(t, base.MakeTrailer(gotTrailer.SeqNum(), base.KindMerge), trailer)
					continue
				}
				require.Equal(t, trailer, gotTrailer)
				require.Equal(t, value, got)
			}
		}
	})
}

// bigRecord is n entries of keys that come in no order.
func bigRecord(n int) []byte {
	w := &batchrepr.Writer{}
	value := make([]byte, 100)
	for i := range uint64(n) {
		w.Add(base.KindSet, binary.BigEndian.AppendUint64(nil, i*0x9e3779b97f4a7c15), value)
	}
	return w.Seal(1)
}

// Values stay where they are: a memtable over a record takes half of what it has without, and what it takes is known.
func TestAMemtableOverARecordCopiesNoValues(t *testing.T) {
	t.Parallel()
	p, record := &Memory{Keep: 1 << 20, Taken: &atomic.Int64{}}, bigRecord(10_000)
	o, err := Sort(record)
	require.NoError(t, err)
	m := p.NewForRecord(o)
	require.Less(t, m.Capacity(), int64(len(record)*3/2))
	require.NoError(t, m.Fill(record, o))
	require.Equal(t, m.Capacity(), int64(len(record)+roundUp(o.arena)), "no byte too much")
	require.InDelta(t, m.Size(), m.Capacity(), 8)
	require.Equal(t, int64(len(record)+o.layout().size()), p.Taken.Load())
	value, _, ok := m.Get(make([]byte, 8), filterpolicy.Hash(make([]byte, 8)), base.MaxSeqNum)
	require.True(t, ok)
	require.Same(t, &value[0], &record[batchrepr.HeaderSize+1+1+8+1], "it is in the record")
	m.Drop()
	require.Zero(t, p.Taken.Load())
	require.Zero(t, p.Kept(), "the next memtable has another layout")
}

// Readers are there while a memtable is filled: they see nothing, or all that they come to is whole.
func TestReadersOfAMemtableThatIsFilled(t *testing.T) {
	t.Parallel()
	record := bigRecord(20_000)
	o, err := Sort(record)
	require.NoError(t, err)
	m := NewForRecord(o)
	done, reads := make(chan struct{}), make(chan int)
	go func() {
		n, passes, it := 0, 0, m.NewIter()
		for last := false; ; passes++ {
			on := it.First()
			for ; on; on = it.Next() {
				if len(it.Value()) != 100 {
					panic("a value that is not whole")
				}
				n++
			}
			m.Size()
			if last {
				break
			}
			select {
			case <-done:
				last = true
			default:
			}
		}
		reads <- n
	}()
	require.NoError(t, m.Fill(record, o))
	close(done)
	require.GreaterOrEqual(t, <-reads, m.Len())
}

// A record that is no record has no order.
func TestSortOfADamagedRecord(t *testing.T) {
	record := kindsRecord(5)
	for n := range record {
		_, err := Sort(record[:n])
		require.Error(t, err)
	}
	w := &batchrepr.Writer{}
	w.Add(base.KindRangeDelete, []byte("a"), rangedel.AppendEnd(nil, []byte("f")))
	m := fillOf(t, w.Seal(9))
	require.False(t, m.HasPoints())
	require.Equal(t, base.SeqNum(9), m.Tombstones().Cover([]byte("b"), base.MaxSeqNum))
}

// BenchmarkFill sorts a record and fills a memtable with it, and BenchmarkApplyLarge applies it to one.
func BenchmarkFill(b *testing.B) {
	record := bigRecord(200_000)
	for b.Loop() {
		fillOf(b, record)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/200_000, "ns/entry")
}

func BenchmarkApplyLarge(b *testing.B) {
	record := bigRecord(200_000)
	size, _, err := Measure(record)
	require.NoError(b, err)
	for b.Loop() {
		if err := New(size).Apply(record); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/200_000, "ns/entry")
}
