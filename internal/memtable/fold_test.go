package memtable

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/scale"
)

// count adds up decimal numbers; join makes a list, which tells the order.
func count(_ []byte, values [][]byte) ([]byte, error) {
	sum := 0
	for _, v := range values {
		var n int
		if _, err := fmt.Sscan(string(v), &n); err != nil {
			return nil, err
		}
		sum += n
	}
	return fmt.Append(nil, sum), nil
}

func join(_ []byte, values [][]byte) ([]byte, error) { return bytes.Join(values, []byte(",")), nil }

// folded applies an operation after the other to a table, and makes folds as a store does.
type folded struct {
	m       *Memtable
	seq     base.SeqNum
	combine Combine
}

func (f *folded) apply(tb require.TestingT, add func(w *batchrepr.Writer)) {
	w := &batchrepr.Writer{}
	add(w)
	record := w.Seal(f.seq + 1)
	f.seq += base.SeqNum(w.Len())
	size, _, err := Measure(record)
	require.NoError(tb, err)
	require.True(tb, f.m.Reserve(size))
	require.NoError(tb, f.m.Apply(record))
	f.m.Release(size)
	require.NoError(tb, f.m.FoldOperands(record, f.combine))
}

// folds returns all entries, folds included, in the order of the list.
func folds(m *Memtable) (all []entry) {
	var it Iter
	it.InitWithFolds(m)
	for ok := it.First(); ok; ok = it.Next() {
		all = append(all, entry{it.Key().Clone(), string(it.Value())})
	}
	return all
}

// requireFolds checks every fold against the versions in it, and returns how many there are.
func requireFolds(tb require.TestingT, m *Memtable, combine Combine) (n int) {
	all := folds(m)
	points := slices.DeleteFunc(slices.Clone(all), func(e entry) bool { return e.key.Kind() == KindFold })
	same := func(a, b entry) bool { return a.String() == b.String() }
	require.True(tb, slices.EqualFunc(points, contents(tb, m), same), "iterators over points pass folds by")
	require.Equal(tb, len(points), m.Len())
	for i, e := range all {
		if e.key.Kind() != KindFold {
			continue
		}
		n++
		f := FoldIn([]byte(e.value))
		require.Equal(tb, base.MakeTrailer(e.key.SeqNum(), base.KindMerge), all[i+1].key.Trailer)
		cover := m.Tombstones().Cover(e.key.User, e.key.SeqNum())
		require.Less(tb, cover, f.Oldest)
		values, whole := foldedValues(all[i+1:], e.key.User, f.Oldest)
		want, err := combine(e.key.User, values)
		require.NoError(tb, err)
		require.Equal(tb, string(want), string(f.Value))
		if whole || f.Whole && cover == 0 {
			require.Equal(tb, whole, f.Whole, "whether something below has a part in the value")
		}
	}
	return n
}

// foldedValues returns what goes into a fold of entries, the oldest first, and whether they
// end with a version that needs nothing below.
func foldedValues(entries []entry, user []byte, oldest base.SeqNum) (values [][]byte, whole bool) {
	for _, v := range entries {
		if !bytes.Equal(v.key.User, user) || v.key.SeqNum() < oldest {
			break
		}
		if v.key.Kind() == base.KindMerge || v.key.Kind() == base.KindSet {
			values = append(values, []byte(v.value))
		}
		whole = v.key.Kind() == base.KindSet || v.key.Kind() == base.KindDelete
	}
	slices.Reverse(values)
	return values, whole
}

func TestFoldsSayWhatTheirVersionsSay(t *testing.T) {
	for name, combine := range map[string]Combine{"count": count, "join": join} {
		t.Run(name, func(t *testing.T) {
			made := 0
			property.Check(t, func(t *rapid.T) {
				f := &folded{m: New(256 << 10), combine: combine}
				for range rapid.IntRange(1, 12).Draw(t, "steps") {
					key := []byte{"abc"[rapid.IntRange(0, 2).Draw(t, "key")]}
					switch rapid.IntRange(0, 9).Draw(t, "op") {
					case 0:
						f.apply(t, func(w *batchrepr.Writer) { w.Add(base.KindSet, key, []byte("100")) })
					case 1:
						f.apply(t, func(w *batchrepr.Writer) { w.Add(base.KindDelete, key, nil) })
					case 2:
						f.apply(t, func(w *batchrepr.Writer) {
							w.Add(base.KindRangeDelete, key, rangedel.AppendEnd(nil, []byte("z")))
						})
					case 3:
						f.apply(t, func(w *batchrepr.Writer) {
							w.Add(base.KindSetTTL, key, base.AppendExpiry(nil, 7), []byte("5")...)
						})
					default:
						n := rapid.IntRange(1, 60).Draw(t, "operands")
						together := rapid.Bool().Draw(t, "together")
						for left := n; left > 0; {
							batch := 1
							if together {
								batch = n
							}
							f.apply(t, func(w *batchrepr.Writer) {
								for i := range batch {
									w.Add(base.KindMerge, key, fmt.Append(nil, left-i))
								}
							})
							left -= batch
						}
					}
				}
				made += requireFolds(t, f.m, combine)
			})
			require.NotZero(t, made)
		})
	}
}

// A reader passes few entries, however many operands a key has.
func TestFoldsKeepChainsShort(t *testing.T) {
	scale.OneGoroutine(t, "one goroutine folds; TestReadersBesideWriters has several")
	for name, combine := range map[string]Combine{"count": count, "join": join} {
		t.Run(name, func(t *testing.T) {
			const operands = 4_000
			f := &folded{m: New(8 << 20), combine: combine}
			for range operands {
				f.apply(t, func(w *batchrepr.Writer) { w.Add(base.KindMerge, []byte("n"), []byte("1")) })
			}
			requireFolds(t, f.m, combine)
			raw := operands * EntrySize(1, 1)
			require.Less(t, f.m.Size(), int64(raw+raw/4), "folds take a small part")
			var it Iter
			it.InitWithFolds(f.m)
			steps := 0
			for ok := it.First(); ok; steps++ {
				if it.Key().Kind() != KindFold {
					ok = it.Next()
					continue
				}
				older := FoldIn(it.Value()).Oldest - 1
				ok = older > 0 && it.SeekVersion([]byte("n"), filterpolicy.Hash([]byte("n")), older)
			}
			if name == "count" {
				require.Less(t, steps, 150, "one operand in 8 has a fold of all before it")
			} else {
				require.Less(t, steps, operands/2, "lists have folds as long as these take a small part of the table")
			}
		})
	}
}

// What writers of long lists combine is in proportion to what they write, and a counter beside
// such a list has its folds.
func TestFoldsCostInProportionToWhatIsWritten(t *testing.T) {
	scale.OneGoroutine(t, "one goroutine folds; TestReadersBesideWriters has several")
	for _, size := range []int{10, 1_000, 30_000} {
		combined := 0
		f := &folded{m: New(16 << 20), combine: func(key []byte, values [][]byte) ([]byte, error) {
			if key[0] == 'n' {
				return count(key, values)
			}
			for _, v := range values {
				combined += len(v)
			}
			return join(key, values)
		}}
		operand := bytes.Repeat([]byte("x"), size)
		counted := min(20_000, 14<<20/(size+400))
		for range counted {
			f.apply(t, func(w *batchrepr.Writer) {
				w.Add(base.KindMerge, []byte("list"), operand)
				w.Add(base.KindMerge, []byte("n"), []byte("1"))
			})
		}
		require.Less(t, int64(combined), 2*f.m.Size(), "operands of %d bytes", size)
		counters := 0
		for _, e := range folds(f.m) {
			if e.key.Kind() == KindFold && string(e.key.User) == "n" {
				counters++
			}
		}
		require.Greater(t, counters, counted/16, "operands of %d bytes", size)
	}
}

func TestFoldsNeedRoomAndAMergerThatWorks(t *testing.T) {
	calls := 0
	f := &folded{m: New(1 << 20), combine: func([]byte, [][]byte) ([]byte, error) {
		calls++
		return nil, errors.New("no")
	}}
	for range 4_000 {
		f.apply(t, func(w *batchrepr.Writer) { w.Add(base.KindMerge, []byte("n"), []byte("1")) })
	}
	require.NotZero(t, calls)
	require.Zero(t, requireFolds(t, f.m, join))

	full := &folded{m: New(8 << 10), combine: count}
	n := 0
	for full.m.Reserve(EntrySize(1, 1)) {
		full.m.Release(EntrySize(1, 1))
		full.apply(t, func(w *batchrepr.Writer) { w.Add(base.KindMerge, []byte("n"), []byte("1")) })
		n++
	}
	require.Equal(t, n, full.m.Len())
	requireFolds(t, full.m, count)
}

func TestFoldAllIsFoldOperandsAfterwards(t *testing.T) {
	f := &folded{m: New(1 << 20), combine: func([]byte, [][]byte) ([]byte, error) { return nil, errors.New("later") }}
	for range 1_500 {
		f.apply(t, func(w *batchrepr.Writer) {
			w.Add(base.KindMerge, []byte("n"), []byte("1"))
			w.Add(base.KindMerge, []byte("other"), []byte("2"))
		})
	}
	f.m.FoldAll(count)
	require.Greater(t, requireFolds(t, f.m, count), 200)
}
