package memtable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
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
	keys := rapid.SliceOfN(rapid.SliceOfN(rapid.ByteRange(0, 2), 0, 20), 1, 40).Draw(t, "keys")
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

// Records whose entries are added in the order of keys, to a table that has others, leave what they leave in their own.
func TestApplyInOrder(t *testing.T) {
	t.Parallel()
	property.Check(t, func(t *rapid.T) {
		got, want := New(1<<16), New(1<<16)
		seq := base.SeqNum(100)
		for range rapid.IntRange(1, 3).Draw(t, "records") {
			record := drawRecord(t, seq)
			o, err := Sort(record)
			require.NoError(t, err)
			require.NoError(t, got.applyInOrder(record, o))
			r, err := batchrepr.NewReader(record)
			require.NoError(t, err)
			seq += base.SeqNum(r.Len())
			require.NoError(t, want.ApplyEntries(r))
			if user := drawKey(t, record); user != nil { // between the records, in its own order
				k := base.MakeKey(append(slices.Clip(user), 0), seq, base.KindSet)
				require.NoError(t, errors.Join(add(got, k, user), add(want, k, user)))
				seq++
			}
		}
		require.Equal(t, contents(t, want), contents(t, got))
		require.Equal(t, want.Len(), got.Len())
		require.Equal(t, want.Deletes(), got.Deletes())
		require.Equal(t, want.Tombstones().AppendAll(nil), got.Tombstones().AppendAll(nil))
		requireLevelsInOrder(t, got)
		for _, e := range contents(t, want) {
			for _, at := range []base.SeqNum{e.key.SeqNum(), base.MaxSeqNum} {
				value, trailer, ok := want.Get(e.key.User, filterpolicy.Hash(e.key.User), at)
				gotValue, gotTrailer, gotOK := got.Get(e.key.User, filterpolicy.Hash(e.key.User), at)
				require.Equal(t, []any{value, trailer, ok}, []any{gotValue, gotTrailer, gotOK})
			}
		}
	})
}

// Apply leaves of a large record what its entries leave one by one, whatever the order of its keys.
func TestApplyOfALargeRecord(t *testing.T) {
	t.Parallel()
	for order, key := range map[string]func(i int) string{
		"ascending": func(i int) string { return fmt.Sprintf("key%06d", i) },
		"late":      func(i int) string { return fmt.Sprintf("key%06d", min(i, 4*inOrderFrom-i)) }, // the end descends
		"twice":     func(i int) string { return fmt.Sprintf("key%06d", i/2) },
		"mixed":     func(i int) string { return fmt.Sprintf("key%06d", i*7919%(inOrderFrom/2)) },
	} {
		w := &batchrepr.Writer{}
		for i := range 3 * inOrderFrom {
			user, value := []byte(key(i)), fmt.Append(nil, i)
			switch i % 10 {
			case 0:
				w.Add(base.KindRangeDelete, user, rangedel.AppendEnd(nil, append(user, '5')))
			case 1, 2:
				w.Add(base.KindDelete, user, nil)
			case 3, 4:
				w.Add(base.KindMerge, user, value)
			case 5:
				w.Add(base.KindSetTTL, user, base.AppendExpiry(nil, 7), value...)
			default:
				w.Add(base.KindSet, user, value)
			}
		}
		record := w.Seal(100)
		size, _, err := Measure(record)
		require.NoError(t, err)
		got, want := New(size+Slack), New(size+Slack)
		r, err := batchrepr.NewReader(record)
		require.NoError(t, err)
		require.NoError(t, errors.Join(got.Apply(record), want.ApplyEntries(r)), order)
		require.Equal(t, contents(t, want), contents(t, got), order)
		require.Equal(t, []int{want.Len(), want.Deletes()}, []int{got.Len(), got.Deletes()}, order)
		require.Equal(t, want.Tombstones().AppendAll(nil), got.Tombstones().AppendAll(nil), order)
		for e, err := range batchrepr.All(record) {
			require.NoError(t, err)
			value, trailer, ok := want.Get(e.Key.User, filterpolicy.Hash(e.Key.User), e.Key.SeqNum())
			gotValue, gotTrailer, gotOK := got.Get(e.Key.User, filterpolicy.Hash(e.Key.User), e.Key.SeqNum())
			require.Equal(t, []any{value, trailer, ok}, []any{gotValue, gotTrailer, gotOK}, order)
		}
		requireLevelsInOrder(t, got)
	}
}

// drawKey returns the key of one of a record's points, or nil.
func drawKey(t *rapid.T, record []byte) (user []byte) {
	o, err := Sort(record)
	require.NoError(t, err)
	if n := len(o.points); n > 0 {
		user = batchrepr.KeyAt(record, int(o.points[rapid.IntRange(0, n-1).Draw(t, "point")].at))
	}
	return user
}

// Several goroutines apply large records, of the same keys in part, while others read.
func TestLargeRecordsAreAppliedAtOnce(t *testing.T) {
	t.Parallel()
	const writers, each = 4, 2 * inOrderFrom
	m, want := New(16<<20), New(16<<20)
	var applying, reading sync.WaitGroup
	var stop atomic.Bool
	for w := range uint64(writers) {
		b := &batchrepr.Writer{}
		for i := range uint64(each) {
			b.Add(base.KindSet, binary.BigEndian.AppendUint64(nil, (i+w%2*each/2)*0x9e3779b97f4a7c15), []byte{byte(w)})
		}
		record := b.Seal(base.SeqNum(1 + w*each))
		r, err := batchrepr.NewReader(record)
		require.NoError(t, err)
		require.NoError(t, want.ApplyEntries(r))
		applying.Go(func() { assert.NoError(t, m.Apply(record)) })
		reading.Go(func() {
			for it := m.NewIter(); !stop.Load(); {
				last := base.InternalKey{}
				for ok := it.First(); ok; ok = it.Next() {
					assert.True(t, last.User == nil || base.Compare(last, it.Key()) < 0)
					last = it.Key()
				}
			}
		})
	}
	applying.Wait()
	stop.Store(true)
	reading.Wait()
	require.Equal(t, contents(t, want), contents(t, m))
	require.Equal(t, writers*each, m.Len())
	requireLevelsInOrder(t, m)
	for _, e := range contents(t, want) {
		value, trailer, ok := m.Get(e.key.User, filterpolicy.Hash(e.key.User), e.key.SeqNum())
		require.Equal(t, []any{e.value, e.key.Trailer, true}, []any{string(value), trailer, ok})
	}
}

// requireLevelsInOrder requires that each level of the list is in order, on which searches rely for their speed.
func requireLevelsInOrder(t require.TestingT, m *Memtable) {
	for level := range int(m.height.Load()) {
		for n := loadLink(m.arena, head, linkAt(level)); n != nilNode; {
			next := loadLink(m.arena, n, linkAt(level))
			require.True(t, next == nilNode || base.Compare(m.key(n), m.key(next)) < 0, "level %d", level)
			n = next
		}
	}
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
