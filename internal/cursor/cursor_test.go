package cursor

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/iterator"
	"github.com/siftkv/siftkv/internal/lookupwatch"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/operand"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/readset"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/internal/version"
)

// A write is one entry of a memtable.
type write struct {
	kind  base.Kind
	key   string
	value string // of a range tombstone, its end
}

func set(k, v string) write      { return write{base.KindSet, k, v} }
func del(k string) write         { return write{base.KindDelete, k, ""} }
func merge(k, v string) write    { return write{base.KindMerge, k, v} }
func delRange(k, e string) write { return write{base.KindRangeDelete, k, e} }
func setTTL(k, v string, expiry uint64) write {
	return write{base.KindSetTTL, k, string(base.AppendExpiry(nil, expiry)) + v}
}

// fill returns a memtable with writes, of which the first has the given number.
func fill(t *testing.T, first base.SeqNum, writes ...write) *memtable.Memtable {
	t.Helper()
	m := memtable.New(1 << 20)
	for i, o := range writes {
		var w batchrepr.Writer
		value := []byte(o.value)
		if o.kind == base.KindRangeDelete {
			value = rangedel.AppendEnd(nil, value)
		}
		w.Add(o.kind, []byte(o.key), value)
		require.NoError(t, m.Apply(w.Seal(first+base.SeqNum(i))))
	}
	return m
}

// newEnv returns what cursors without files need; the clock says now.
func newEnv(now uint64) *Env {
	return &Env{Tables: &tablecache.Cache{}, Counters: &counters.Store{}, Watch: &lookupwatch.Watch{},
		Now: func() uint64 { return now }, Closed: &atomic.Bool{}}
}

// newView returns a view of memtables, the newest first.
func newView(at base.SeqNum, mems ...*memtable.Memtable) View {
	return View{Mem: mems[0], Imms: mems[1:], Version: &version.Version{}, At: at,
		Operands: &operand.Combiner{Merger: operand.Append{}, MaxValue: 1 << 20}}
}

// entries returns what a cursor has going forward, and requires the same going backward.
func entries(t *testing.T, c *Cursor) string {
	t.Helper()
	var there, back []string
	for ok := c.First(); ok; ok = c.Next() {
		there = append(there, fmt.Sprintf("%s=%s", c.Key(), c.Value()))
	}
	require.NoError(t, c.Error())
	for ok := c.Last(); ok; ok = c.Prev() {
		back = append(back, fmt.Sprintf("%s=%s", c.Key(), c.Value()))
	}
	require.NoError(t, c.Error())
	slices.Reverse(back)
	require.Equal(t, there, back)
	return fmt.Sprint(there)
}

func TestVersionsAreResolved(t *testing.T) {
	for name, c := range map[string]struct {
		older, newer []write // their numbers begin at 10 and 20
		at           base.SeqNum
		want         string
	}{
		"the newest wins":         {[]write{set("a", "1"), set("b", "1")}, []write{set("a", "2")}, 99, "[a=2 b=1]"},
		"newer ones are not seen": {[]write{set("a", "1")}, []write{set("a", "2"), set("b", "2")}, 19, "[a=1]"},
		"a tombstone":             {[]write{set("a", "1"), set("b", "1")}, []write{del("a")}, 99, "[b=1]"},
		"a range tombstone": {[]write{set("a", "1"), set("b", "1"), set("c", "1")},
			[]write{delRange("a", "c"), set("b", "2")}, 99, "[b=2 c=1]"},
		"operands":         {[]write{set("a", "1"), merge("a", "2")}, []write{merge("a", "3")}, 99, "[a=123]"},
		"operands alone":   {nil, []write{merge("a", "3"), merge("a", "4")}, 99, "[a=34]"},
		"over a tombstone": {[]write{set("a", "1"), del("a")}, []write{merge("a", "3")}, 99, "[a=3]"},
		"over a range": {[]write{set("a", "1"), merge("a", "2")}, []write{delRange("a", "b"), merge("a", "3")}, 99,
			"[a=3]"},
		"expired":            {[]write{set("a", "1"), set("b", "1")}, []write{setTTL("a", "2", 1000)}, 99, "[b=1]"},
		"not yet":            {[]write{set("a", "1")}, []write{setTTL("a", "2", 1001)}, 99, "[a=2]"},
		"over what expires":  {[]write{setTTL("a", "1", 1001)}, []write{merge("a", "3")}, 99, "[a=13]"},
		"over what has":      {[]write{setTTL("a", "1", 999)}, []write{merge("a", "3")}, 99, "[a=3]"},
		"nothing is visible": {[]write{set("a", "1")}, nil, 5, "[]"},
	} {
		view := newView(c.at, fill(t, 20, c.newer...), fill(t, 10, c.older...))
		cur := New(newEnv(1000), view, nil)
		require.Equal(t, c.want, entries(t, cur), name)
		require.NoError(t, cur.Close(), name)
	}
}

func TestSizesAndExpiry(t *testing.T) {
	mem := fill(t, 1, set("a", "12"), merge("b", "1"), setTTL("c", "123", 2000))
	for _, keysOnly := range []bool{false, true} {
		c := New(newEnv(1000), newView(99, mem), &Options{KeysOnly: keysOnly})
		require.Zero(t, c.Size())
		for _, want := range []struct {
			size   int
			expiry uint64
		}{{2, 0}, {map[bool]int{false: 1, true: -1}[keysOnly], 0}, {3, 2000}} {
			require.True(t, c.Next() || c.First())
			require.Equal(t, want.size, c.Size())
			require.Equal(t, want.expiry, c.Expiry())
			require.Equal(t, keysOnly, c.Value() == nil)
		}
		require.NoError(t, c.Close())
	}
}

// A cursor agrees with a model wherever it moves, whatever is in its memtables.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 28))
		key := func() string { return string('a' + byte(rng.IntN(8))) }
		model, at := map[string]string{}, base.SeqNum(1+rng.IntN(100))
		var mems []*memtable.Memtable
		apply := func(o write) {
			switch o.kind {
			case base.KindSet:
				model[o.key] = o.value
			case base.KindMerge:
				model[o.key] += o.value
			case base.KindRangeDelete:
				maps.DeleteFunc(model, func(k, _ string) bool { return k >= o.key && k < o.value })
			default: // a tombstone, or a value that has expired
				delete(model, o.key)
			}
		}
		random := func(first base.SeqNum, n int, visible func(base.SeqNum) bool) []write {
			var writes []write
			for i := range n {
				kinds := []write{set(key(), strconv.Itoa(i)), set("c", "c"), merge(key(), "+"), del(key()),
					setTTL(key(), "old", 1), delRange(key(), key())}
				o := kinds[rng.IntN(len(kinds))]
				if o.kind == base.KindRangeDelete && o.value <= o.key {
					o = set("c", "again")
				}
				if writes = append(writes, o); visible(first + base.SeqNum(i)) {
					apply(o)
				}
			}
			return writes
		}
		for i := range 3 {
			first := base.SeqNum(1 + i*40)
			writes := random(first, rng.IntN(40), func(s base.SeqNum) bool { return s <= at })
			mems = append(mems, fill(t, first, writes...))
		}
		slices.Reverse(mems)
		view := newView(at, mems...)
		if seed%3 == 0 {
			const first = 1 << 55
			own := random(first, rng.IntN(20), func(base.SeqNum) bool { return true })
			view.Own = &Overlay{}
			view.Own.Use(fill(t, first, own...), first, first+base.SeqNum(len(own))-1, &readset.Tracker{Limit: 1 << 20})
		}
		o := &Options{KeysOnly: seed%5 == 0}
		keys := slices.Sorted(maps.Keys(model))
		if seed%2 == 0 {
			o.LowerBound, o.UpperBound = []byte("b"), []byte("f")
			keys = slices.DeleteFunc(keys, func(k string) bool { return k < "b" || k >= "f" })
		}
		c := New(newEnv(1000), view, o)
		walk(t, rng, c, keys, model, o.KeysOnly)
		require.NoError(t, c.Close())
	}
}

// walk moves a cursor at random, and compares each entry.
func walk(t *testing.T, rng *rand.Rand, c *Cursor, keys []string, values map[string]string, keysOnly bool) {
	t.Helper()
	at := -1
	for range 60 {
		seek := []byte{'a' + byte(rng.IntN(10))}
		i, _ := slices.BinarySearch(keys, string(seek))
		was := at >= 0 && at < len(keys)
		var ok bool
		move := rng.IntN(12)
		switch {
		case move == 0:
			ok, at = c.First(), 0
		case move == 1:
			ok, at = c.Last(), len(keys)-1
		case move == 2:
			ok, at = c.SeekGE(seek), i
		case move == 3:
			ok, at = c.SeekLT(seek), i-1
		case move < 8:
			ok, at = c.Next(), at+1
		default:
			ok, at = c.Prev(), at-1
		}
		require.NoError(t, c.Error())
		if !was && !ok {
			at = -1
			continue
		}
		require.Equal(t, at >= 0 && at < len(keys), ok, "at %d of %q", at, keys)
		if !ok {
			at = -1
			continue
		}
		require.Equal(t, keys[at], string(c.Key()))
		if !keysOnly {
			require.Equal(t, values[keys[at]], string(c.Value()))
		}
	}
}

// A scan past a key with many versions does not walk over all of them, in either direction and whichever of them it
// sees.
func TestManyVersionsAreNotWalked(t *testing.T) {
	const versions = 2000
	writes := []write{set("a", ""), set("hot", ""), set("z", "")}
	for i := range versions {
		writes = append(writes, set("hot", strconv.Itoa(i)))
	}
	mem := fill(t, 1, writes...)
	for _, at := range []base.SeqNum{3, 1000, base.MaxSeqNum} {
		c := New(newEnv(0), newView(at, mem), nil)
		counting := &countingIter{Iter: c.input.Iters[0]}
		c.input.Iters[0] = counting
		for _, move := range []struct{ first, next func() bool }{{c.First, c.Next}, {c.Last, c.Prev}} {
			counting.moves = 0
			n := 0
			for ok := move.first(); ok; ok = move.next() {
				n++
			}
			require.Equal(t, 3, n)
			require.Less(t, counting.moves, 50)
		}
		require.NoError(t, c.Close())
	}
}

type countingIter struct {
	iterator.Iter
	moves int
}

func (c *countingIter) Next() bool { c.moves++; return c.Iter.Next() }
func (c *countingIter) Prev() bool { c.moves++; return c.Iter.Prev() }

// After a value that cannot be made, a cursor goes on from its key.
func TestABadValueIsPassed(t *testing.T) {
	mem := fill(t, 1, set("a", "1"), merge("b", "2"), merge("b", "3"), set("c", "4"))
	view := newView(99, mem)
	view.Operands = &operand.Combiner{}
	c := New(newEnv(0), view, nil)
	for _, move := range []struct{ first, next func() bool }{{c.First, c.Next}, {c.Last, c.Prev}} {
		require.True(t, move.first())
		require.False(t, move.next())
		require.True(t, base.IsValueError(c.Error()))
		require.ErrorIs(t, c.Error(), operand.ErrNoMerger)
		require.Nil(t, c.Key())
		require.True(t, move.next())
		require.False(t, move.next())
		require.NoError(t, c.Error())
	}
	require.NoError(t, c.Close())
}

func TestMovesAfterTheStoreIsClosed(t *testing.T) {
	env := newEnv(0)
	c := New(env, newView(99, fill(t, 1, set("a", "1"), set("b", "2"))), nil)
	require.True(t, c.First())
	env.Closed.Store(true)
	require.False(t, c.Next())
	require.ErrorIs(t, c.Error(), base.ErrClosed)
	require.ErrorIs(t, c.Close(), base.ErrClosed)
}

func TestBounds(t *testing.T) {
	b := func(s string) []byte {
		if s == "-" {
			return nil
		}
		return []byte(s)
	}
	for _, c := range []struct{ lower, upper, prefix, wantLower, wantUpper string }{
		{"-", "-", "", "-", "-"},
		{"", "", "", "", ""},
		{"a", "c", "", "a", "c"},
		{"-", "-", "b", "b", "c"},
		{"a", "z", "b", "b", "c"},
		{"ba", "bx", "b", "ba", "bx"},
		{"c", "d", "b", "c", "c"},
		{"-", "a", "b", "b", "a"},
		{"-", "-", "b\xff", "b\xff", "c"},
		{"-", "-", "\xff", "\xff", "-"},
	} {
		var bounds Bounds
		for range 2 { // the second time with buffers
			bounds.Set(&Options{LowerBound: b(c.lower), UpperBound: b(c.upper), Prefix: b(c.prefix)})
			require.Equal(t, b(c.wantLower), bounds.Lower, "%+v", c)
			require.Equal(t, b(c.wantUpper), bounds.Upper, "%+v", c)
			bounds.release()
		}
	}
}

func TestPrefetchLimits(t *testing.T) {
	for _, c := range []struct {
		visited uint64
		cold    bool
		entries int
		bytes   int64
	}{{2, false, 8, 256 << 10}, {20, false, 20, 256 << 10}, {1000, true, 64, 1 << 20}} {
		entries, bytes := prefetchLimits(c.visited, c.cold)
		require.Equal(t, c.entries, entries)
		require.Equal(t, c.bytes, bytes)
	}
}

// What a cursor passed over, going forward and backward, to a bound and to an end.
func TestAnOverlayNotesWhatWasPassed(t *testing.T) {
	mem := fill(t, 1, set("b", ""), set("d", ""), set("f", ""))
	for name, c := range map[string]struct {
		moves func(c *Cursor)
		want  string
	}{
		"nothing":          {func(*Cursor) {}, ""},
		"first":            {func(c *Cursor) { c.First() }, `["", "b\x00")`},
		"a seek":           {func(c *Cursor) { c.SeekGE([]byte("c")) }, `["c", "d\x00")`},
		"further":          {func(c *Cursor) { c.SeekGE([]byte("c")); c.Next() }, `["c", "f\x00")`},
		"to the end":       {func(c *Cursor) { c.SeekGE([]byte("e")); c.Next(); c.Next() }, `["e", -)`},
		"backward":         {func(c *Cursor) { c.SeekLT([]byte("e")) }, `["d", "e")`},
		"to the beginning": {func(c *Cursor) { c.SeekLT([]byte("c")); c.Prev() }, `["", "c")`},
		"last":             {func(c *Cursor) { c.Last() }, `["f", -)`},
		"to and fro":       {func(c *Cursor) { c.SeekGE([]byte("d")); c.Next(); c.Prev(); c.Prev() }, `["b", "f\x00")`},
		"two seeks": {func(c *Cursor) { c.SeekGE([]byte("e")); c.SeekGE([]byte("a")) },
			`["e", "f\x00")["a", "b\x00")`},
	} {
		var reads readset.Tracker
		reads.Limit = 1 << 20
		view, own := newView(99, mem), &Overlay{}
		require.True(t, own.Use(nil, 1000, 999, &reads))
		require.True(t, own.Use(nil, 1000, 999, &reads), "no cursor was made")
		view.Own = own
		cur := New(newEnv(0), view, nil)
		require.False(t, own.Use(nil, 1000, 999, &reads), "another cursor has it")
		c.moves(cur)
		require.NoError(t, cur.Close())
		var got bytes.Buffer
		for _, s := range reads.Spans {
			if fmt.Fprintf(&got, "[%q, ", s.Lo); s.Hi == nil {
				got.WriteString("-)")
			} else {
				fmt.Fprintf(&got, "%q)", s.Hi)
			}
		}
		require.Equal(t, c.want, got.String(), name)
		require.True(t, own.Use(nil, 1000, 999, &reads), "the cursor is closed")
	}
}
