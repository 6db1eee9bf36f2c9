package memtable

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/internal/turns"
)

// Points are in the order of their internal keys, however much the keys have in common, zeros at their ends included.
func TestSort(t *testing.T) {
	t.Parallel()
	property.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		parts := rapid.SliceOfN(rapid.SliceOfN(rapid.ByteRange(0, 2), 0, 9), 2, 9).Draw(t, "parts")
		w, keys := &batchrepr.Writer{}, []base.InternalKey(nil)
		for i := range rapid.IntRange(1, 3*radixFrom).Draw(t, "entries") {
			user := []byte(nil)
			for range rng.IntN(5) {
				user = append(user, parts[rng.IntN(len(parts))]...)
			}
			w.Add(base.KindSet, user, nil)
			keys = append(keys, base.MakeKey(user, base.SeqNum(7+i), base.KindSet))
		}
		slices.SortFunc(keys, base.Compare)
		record := w.Seal(7)
		o, err := Sort(record)
		require.NoError(t, err)
		require.Len(t, o.points, len(keys))
		for i, want := range keys {
			e, _, err := o.entry(record, 7, i)
			require.NoError(t, err)
			require.Zero(t, base.Compare(want, e.Key), "%d", i)
		}
	})
}

// indexRecords is records with the rows of a full-text index, as bleve has them: for each document a row for each
// of its terms, in no order, and then one for each of the terms. Many begin alike.
func indexRecords(records, docs, terms int) (all [][]byte) {
	rng, seq := rand.New(rand.NewPCG(1, 2)), 1
	for r := range records {
		w, seen := &batchrepr.Writer{}, map[string]bool{}
		for doc := range docs {
			for range terms {
				term := fmt.Sprintf("%x", int(20_000*rng.Float64()*rng.Float64()*rng.Float64()))
				seen[term] = true
				key := fmt.Appendf(nil, "t\x03\x00content/%s\xffnet/http/file%d_test.go", term, r*docs+doc)
				w.Add(base.KindSet, key, make([]byte, 30))
			}
		}
		for term := range seen {
			w.Add(base.KindMerge, fmt.Appendf(nil, "d\x03\x00content/%s", term), make([]byte, 9))
		}
		all = append(all, w.Seal(base.SeqNum(seq)))
		seq += w.Len()
	}
	return all
}

// BenchmarkSort sorts the rows of an index, and BenchmarkApplyIndex adds them to a memtable, record after record. They
// report the processor time of an entry.
func BenchmarkSort(b *testing.B) {
	benchmarkIndex(b, func(_ *Memtable, record []byte) error {
		_, err := Sort(record)
		return err
	})
}

func BenchmarkApplyIndex(b *testing.B) { benchmarkIndex(b, (*Memtable).Apply) }

func benchmarkIndex(b *testing.B, f func(m *Memtable, record []byte) error) {
	records, took, entries := indexRecords(4, 100, 400), time.Duration(0), 0
	for b.Loop() {
		m := New(64 << 20)
		runtime.GC()
		start := turns.ProcessorTime()
		for _, record := range records {
			require.NoError(b, f(m, record))
			r, err := batchrepr.NewReader(record)
			require.NoError(b, err)
			entries += r.Len()
		}
		took += turns.ProcessorTime() - start
	}
	b.ReportMetric(float64(took.Nanoseconds())/float64(entries), "cpu-ns/entry")
}
