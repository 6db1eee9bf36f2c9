package rangedel

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/scale"
)

// naive answers by looking at every tombstone.
type naive []Tombstone

func (n naive) cover(key []byte, at base.SeqNum) (seq base.SeqNum) {
	for _, t := range n {
		if t.Seq <= at && bytes.Compare(t.Start, key) <= 0 && (t.End == nil || bytes.Compare(key, t.End) < 0) {
			seq = max(seq, t.Seq)
		}
	}
	return seq
}

// letters are the keys that the tests ask for: all bounds are among them.
func letters(f func(key []byte)) {
	f([]byte{})
	for c := byte('a'); c <= 'n'; c++ {
		f([]byte{c})
	}
}

func drawBound(t *rapid.T) []byte {
	i := rapid.IntRange(-2, 12).Draw(t, "bound")
	switch i {
	case -2:
		return nil
	case -1:
		return []byte{}
	}
	return []byte{byte('a' + i)}
}

// TestHistoryAgainstNaive adds batches of tombstones, asks some of the histories in between, and
// holds each that there ever was, as of each sequence number, against a look at every tombstone.
func TestHistoryAgainstNaive(t *testing.T) {
	check(t, func(t *rapid.T) {
		var all naive
		var h *History
		type moment struct {
			h   *History
			all naive
		}
		var moments []moment
		seq := base.SeqNum(0)
		for range rapid.IntRange(1, 12).Draw(t, "batches") {
			var batch []Tombstone
			for range rapid.IntRange(1, 4).Draw(t, "size") {
				seq++
				batch = append(batch, Tombstone{Start: drawBound(t), End: drawBound(t), Seq: seq})
			}
			h = h.Add(batch)
			all = append(slices.Clip(all), batch...)
			if rapid.Bool().Draw(t, "ask") {
				require.Equal(t, all.cover([]byte("d"), seq), h.Cover([]byte("d"), seq))
			}
			moments = append(moments, moment{h, all})
		}
		last := all[len(all)-1].Seq
		ends := map[base.SeqNum]bool{0: true, last: true, base.MaxSeqNum: true}
		for _, m := range moments {
			ends[m.all[len(m.all)-1].Seq] = true
		}
		for _, m := range moments {
			for at := range ends {
				letters(func(key []byte) { requireCover(t, m.h, m.all, key, at) })
			}
			lo, hi := drawBound(t), drawBound(t)
			want := base.SeqNum(0)
			letters(func(key []byte) {
				if bytes.Compare(lo, key) <= 0 && CompareEnds(key, hi) < 0 {
					want = max(want, m.all.cover(key, base.MaxSeqNum))
				}
			})
			require.Equal(t, want, m.h.NewestIn(lo, hi), "in [%q, %q)", lo, hi)
			set := NewSet(m.h.AppendAll(nil))
			letters(func(key []byte) {
				require.Equal(t, m.all.cover(key, last), set.Cover(key, last))
			})
		}
	})
}

// requireCover holds what h says of a key, and of the span around it, against all.
func requireCover(t require.TestingT, h interface {
	Cover(key []byte, at base.SeqNum) base.SeqNum
	Span(key []byte, at base.SeqNum) (start, end []byte, seq base.SeqNum)
}, all naive, key []byte, at base.SeqNum) {
	want := all.cover(key, at)
	require.Equal(t, want, h.Cover(key, at), "%v over %q as of %d", all, key, at)
	start, end, seq := h.Span(key, at)
	require.Equal(t, want, seq)
	require.LessOrEqual(t, bytes.Compare(start, key), 0)
	require.True(t, end == nil || bytes.Compare(key, end) < 0)
	letters(func(other []byte) {
		if bytes.Compare(start, other) <= 0 && (end == nil || bytes.Compare(other, end) < 0) {
			require.Equal(t, want, all.cover(other, at), "%v: %q has the span of %q as of %d", all, other, key, at)
		}
	})
}

// fresh is a set that is asked each time as if it were the first.
type fresh struct{ *Set }

func (s fresh) Span(key []byte, at base.SeqNum) (start, end []byte, seq base.SeqNum) {
	near := 0
	return s.Set.Span(key, at, &near)
}

// TestSetSpansAgainstNaive asks a set for the spans around keys, gaps included.
func TestSetSpansAgainstNaive(t *testing.T) {
	check(t, func(t *rapid.T) {
		var all naive
		for i := range rapid.IntRange(0, 8).Draw(t, "tombstones") {
			all = append(all, Tombstone{Start: drawBound(t), End: drawBound(t), Seq: base.SeqNum(i + 1)})
		}
		set := NewSet(all)
		kept := base.SeqNum(rapid.IntRange(0, 8).Draw(t, "kept"))
		var some naive
		for _, tomb := range all {
			if tomb.Seq != kept {
				some = append(some, tomb)
			}
		}
		filtered := set.Filter(func(tomb Tombstone) bool { return tomb.Seq != kept })
		lo, hi := drawBound(t), drawBound(t)
		clipped := NewSet(set.Clip(nil, lo, hi))
		near := 0
		letters(func(key []byte) {
			if rapid.IntRange(0, 3).Draw(t, "jump") == 0 {
				near = rapid.IntRange(0, set.Len()).Draw(t, "near")
			}
			start, end, seq := fresh{set}.Span(key, 5)
			gotStart, gotEnd, gotSeq := set.Span(key, 5, &near)
			require.Equal(t, []any{start, end, seq}, []any{gotStart, gotEnd, gotSeq})
			for at := range base.SeqNum(10) {
				requireCover(t, fresh{set}, all, key, at)
				requireCover(t, fresh{filtered}, some, key, at)
			}
			want := all.cover(key, base.MaxSeqNum)
			if bytes.Compare(key, lo) < 0 || CompareEnds(key, hi) >= 0 {
				want = 0
			}
			require.Equal(t, want, clipped.Cover(key, base.MaxSeqNum), "%v within [%q, %q)", all, lo, hi)
		})
	})
}

func (h *History) length() int {
	if h == nil {
		return 0
	}
	return h.count
}

// height returns how deep a tree is.
func (n *node) height() int {
	if n == nil {
		return 0
	}
	return 1 + max(n.left.height(), n.right.height())
}

// TestHistoryStaysBalanced adds many tombstones in orders that could make a list of the
// tree: the memory of a tombstone and the steps of a search must not grow with them.
func TestHistoryStaysBalanced(t *testing.T) {
	n := scale.Count(5000, 20_000)
	key := func(i int) []byte { return binary.BigEndian.AppendUint32([]byte("k"), uint32(i)) }
	shuffled := rand.New(rand.NewPCG(1, 2)).Perm(n)
	for name, tomb := range map[string]func(i int) (lo, hi []byte){
		"one key each, ascending":  func(i int) (lo, hi []byte) { return key(i), key(i + 1) },
		"one key each, descending": func(i int) (lo, hi []byte) { return key(n - i), key(n - i + 1) },
		"one key each, any order":  func(i int) (lo, hi []byte) { return key(shuffled[i]), key(shuffled[i] + 1) },
		"cut out of one":           func(i int) (lo, hi []byte) { return key(i % n), key(i%n + 1 + n*(i/(n-1))) },
		"trims that grow":          func(i int) (lo, hi []byte) { return nil, key(i + 1) },
		"trims that shrink":        func(i int) (lo, hi []byte) { return nil, key(n - i) },
		"always the same":          func(int) (lo, hi []byte) { return key(3), key(9) },
	} {
		h := (*History)(nil).Add([]Tombstone{{Start: key(0), End: key(n), Seq: 1}})
		for i := range n {
			lo, hi := tomb(i)
			h = h.Add([]Tombstone{{Start: lo, End: hi, Seq: base.SeqNum(i + 2)}})
		}
		require.Less(t, h.tree().height(), 80, name)
		nodes := map[*node]bool{}
		h.tree().count(nodes)
		require.LessOrEqual(t, len(nodes), 3*(n+1), name)
		require.LessOrEqual(t, h.Size(), (n+1)*TombstoneSize(5, 5), name)
	}
}

// TestHistoryOfStacks asks for the past of ranges that were deleted again and again: the
// steps must not grow with how often.
func TestHistoryOfStacks(t *testing.T) {
	n := scale.Count(5000, 20_000)
	key := func(i int) []byte { return binary.BigEndian.AppendUint32([]byte("k"), uint32(i)) }
	for name, tomb := range map[string]func(i int) (lo, hi []byte){
		"trims that grow":   func(i int) (lo, hi []byte) { return nil, key(i + 1) },
		"trims that shrink": func(i int) (lo, hi []byte) { return nil, key(n - i) },
		"always the same":   func(int) (lo, hi []byte) { return key(0), key(9) },
	} {
		var h *History
		var all naive
		for i := range n {
			lo, hi := tomb(i)
			all = append(all, Tombstone{Start: lo, End: hi, Seq: base.SeqNum(i + 1)})
			h = h.Add(all[i:])
		}
		for i := range 1000 {
			k, at := key(i%7), base.SeqNum(rand.IntN(n))
			require.Equal(t, all[:at].cover(k, at), h.Cover(k, at), name)
			require.Less(t, h.tree().steps(k, at), 150, name)
		}
	}
}

// TestHistoryIsAskedWhileItGrows has readers ask for the past of a history while tombstones are added.
func TestHistoryIsAskedWhileItGrows(t *testing.T) {
	t.Parallel()
	const n = 3 * maxPending
	key := func(i int) []byte { return binary.BigEndian.AppendUint32([]byte("k"), uint32(i)) }
	var all naive
	for i := range n {
		at := i * 7 % 100
		all = append(all, Tombstone{Start: key(at), End: key(at + 3), Seq: base.SeqNum(i + 1)})
	}
	var newest atomic.Pointer[History]
	var readers sync.WaitGroup
	wrong := make(chan string, 3)
	for r := range cap(wrong) {
		readers.Go(func() {
			for i := r; newest.Load().length() < n; i++ {
				h, k := newest.Load(), key(i%100)
				at := base.SeqNum(i % (h.length() + 1))
				if got, want := h.Cover(k, at), all[:at].cover(k, at); got != want {
					wrong <- fmt.Sprintf("%d over %q as of %d, want %d", got, k, at, want)
					return
				}
			}
		})
	}
	for i := range n {
		newest.Store(newest.Load().Add(all[i : i+1]))
	}
	readers.Wait()
	require.Empty(t, wrong)
}

// TestTombstonesThatNobodyAsksForAreNoted counts what Add allocates if no reader comes: less than
// a path of the tree for each.
func TestTombstonesThatNobodyAsksForAreNoted(t *testing.T) {
	key := func(i int) []byte { return binary.BigEndian.AppendUint32([]byte("k"), uint32(i)) }
	n := 20 * maxPending
	ts := make([]Tombstone, n)
	for i := range ts {
		ts[i] = Tombstone{Start: key(i), End: key(i + 1), Seq: base.SeqNum(i + 1)}
	}
	allocs := testing.AllocsPerRun(1, func() {
		var h *History
		for i := range ts {
			h = h.Add(ts[i : i+1])
		}
	})
	require.Less(t, allocs/float64(n), 5.0)
}

// steps returns how many nodes Cover looks at.
func (n *node) steps(key []byte, at base.SeqNum) int {
	switch {
	case n == nil:
		return 0
	case bytes.Compare(key, n.start) < 0:
		return 1 + n.left.steps(key, at)
	case n.end != nil && bytes.Compare(n.end, key) <= 0:
		return 1 + n.right.steps(key, at)
	case n.seq <= at:
		return 1
	}
	return 1 + n.below(at).steps(key, at)
}

func (n *node) count(seen map[*node]bool) {
	for ; n != nil && !seen[n]; n = n.right {
		seen[n] = true
		n.left.count(seen)
		n.under.count(seen)
	}
}

func BenchmarkHistoryAdd(b *testing.B) {
	key := func(i uint64) []byte { return binary.BigEndian.AppendUint64(nil, i) }
	b.ReportAllocs()
	var h *History
	for i := range b.N {
		at := rand.Uint64N(1 << 40)
		h = h.Add([]Tombstone{{Start: key(at), End: key(at + 1), Seq: base.SeqNum(i + 1)}})
	}
}
