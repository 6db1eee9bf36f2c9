package memtable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
)

func numbered(i int) base.InternalKey {
	return base.MakeKey(binary.BigEndian.AppendUint64([]byte("k"), uint64(i)), base.SeqNum(i), base.KindSet)
}

// A history is numbers that writers insert, each its share and in order.
type history struct {
	m        *Memtable
	together int // points that a writer inserts together
	shares   [][]int
	added    []atomic.Int64 // by writer: how many of its Adds have returned
}

func newHistory(numbers []int, writers, together int) *history {
	h := &history{
		together: together,
		m:        New(len(numbers)*EntrySize(9, 8) + 1<<10),
		shares:   make([][]int, writers),
		added:    make([]atomic.Int64, writers),
	}
	for i, n := range numbers {
		h.shares[i%writers] = append(h.shares[i%writers], n)
	}
	return h
}

func (h *history) write(w int) error {
	for part := range slices.Chunk(h.shares[w], h.together) {
		var in inserts
		for _, n := range part {
			k := numbered(n)
			if err := in.add(h.m, k, xxhash.Sum64(k.User), k.User[1:]); err != nil {
				return err
			}
		}
		if err := in.flush(h.m); err != nil {
			return err
		}
		h.added[w].Add(int64(len(part)))
	}
	return nil
}

// seen returns the numbers that every later read must find.
func (h *history) seen() []int {
	var numbers []int
	for w, share := range h.shares {
		numbers = append(numbers, share[:h.added[w].Load()]...)
	}
	slices.Sort(numbers)
	return numbers
}

// checkWalk walks the table one way. The list must be strictly sorted, and hold
// all that had been added.
func (h *history) checkWalk(start, move func(*Iter) bool, direction int) error {
	must := h.seen()
	if direction < 0 {
		slices.Reverse(must)
	}
	last := base.InternalKey{}
	it := h.m.NewIter()
	for ok := start(it); ok; ok = move(it) {
		k := it.Key()
		if last.User != nil && base.Compare(last, k)*direction >= 0 {
			return fmt.Errorf("%s then %s, in direction %d", last, k, direction)
		}
		if string(it.Value()) != string(k.User[1:]) {
			return fmt.Errorf("%s has value %q", k, it.Value())
		}
		if len(must) > 0 && must[0] == int(k.SeqNum()) {
			must = must[1:]
		}
		last = k
	}
	if len(must) > 0 {
		return fmt.Errorf("%d was added and not seen in direction %d", must[0], direction)
	}
	return nil
}

// checkLookups looks up numbers that had been added, and their predecessors.
func (h *history) checkLookups() error {
	for _, n := range h.seen() {
		k := numbered(n)
		value, trailer, ok := get(h.m, k.User, base.MaxSeqNum)
		if !ok || trailer != k.Trailer || string(value) != string(k.User[1:]) {
			return fmt.Errorf("Get(%s) = %q, %d, %t", k, value, trailer, ok)
		}
		it := h.m.NewIter()
		if !it.SeekGE(k) || base.Compare(it.Key(), k) != 0 {
			return fmt.Errorf("SeekGE(%s) is at %s", k, it.Key())
		}
		if it.Prev() && base.Compare(it.Key(), k) >= 0 {
			return fmt.Errorf("Prev from %s is at %s", k, it.Key())
		}
		if it.SeekLT(k) && base.Compare(it.Key(), k) >= 0 {
			return fmt.Errorf("SeekLT(%s) is at %s", k, it.Key())
		}
	}
	return nil
}

func (h *history) check() error {
	return errors.Join(
		h.checkWalk((*Iter).First, (*Iter).Next, +1),
		h.checkWalk((*Iter).Last, (*Iter).Prev, -1),
		h.checkLookups())
}

func TestReadersBesideWriters(t *testing.T) {
	const n, writers, readers = 6000, 4, 3
	ascending := make([]int, n)
	for i := range ascending {
		ascending[i] = i
	}
	descending := slices.Clone(ascending)
	slices.Reverse(descending)
	// Ascending and descending writers contend at one place, others everywhere.
	random := rand.New(rand.NewPCG(1, 2)).Perm(n)
	for _, test := range []struct {
		name     string
		numbers  []int
		together int
	}{
		{"ascending", ascending, 1}, {"descending", descending, 1}, {"random", random, 1},
		{"descending together", descending, maxInserts - 3}, {"random together", random, maxInserts + 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHistory(test.numbers, writers, test.together)
			var writing, reading sync.WaitGroup
			var done atomic.Bool
			for w := range writers {
				writing.Go(func() { assert.NoError(t, h.write(w)) })
			}
			for range readers {
				reading.Go(func() {
					for !done.Load() {
						if !assert.NoError(t, h.check()) {
							return
						}
					}
				})
			}
			writing.Wait()
			done.Store(true)
			reading.Wait()
			require.NoError(t, h.check())
			require.Equal(t, n, h.m.Len())
			require.Len(t, h.seen(), n)
			requireTowers(t, h.m)
		})
	}
}

// requireTowers holds the list to its invariant: what a level links is a
// subsequence of the level below.
func requireTowers(t *testing.T, m *Memtable) {
	t.Helper()
	below := levelOf(m, 0)
	require.Len(t, below, m.Len())
	for level := 1; level < maxHeight; level++ {
		nodes := levelOf(m, level)
		i := 0
		for _, n := range below {
			if i < len(nodes) && nodes[i] == n {
				i++
			}
		}
		require.Equal(t, len(nodes), i, "level %d", level)
		below = nodes
	}
}

func levelOf(m *Memtable, level int) []node {
	nodes := []node{}
	for n := loadLink(m.arena, head, linkAt(level)); n != nilNode; n = loadLink(m.arena, n, linkAt(level)) {
		nodes = append(nodes, n)
	}
	return nodes
}

func TestPrevWalksFromAnyHint(t *testing.T) {
	const n = 500
	m := New(n * EntrySize(9, 0))
	for _, i := range rand.New(rand.NewPCG(3, 4)).Perm(n) {
		require.NoError(t, add(m, numbered(i), nil))
	}
	want := contents(t, m)
	// A store of a hint may arrive late: any node before is a good one.
	rng := rand.New(rand.NewPCG(5, 6))
	nodes := levelOf(m, 0)
	for range 5 {
		for i, n := range nodes {
			before := head
			if j := rng.IntN(i + 1); j > 0 {
				before = nodes[j-1]
			}
			m.setHint(n, before)
		}
		require.Equal(t, want, contents(t, m))
	}
}

func TestLinkAfterALostRace(t *testing.T) {
	m := New(1 << 12)
	for _, i := range []int{10, 50} {
		require.NoError(t, add(m, numbered(i), nil))
	}
	k := numbered(30)
	var p insert
	require.NoError(t, m.prepare(&p, k, 0, nil))
	m.find(&p)
	for _, i := range []int{20, 25, 40} { // others, meanwhile
		require.NoError(t, add(m, numbered(i), nil))
	}
	require.False(t, m.link(p.node, 0, &p.splice))
	require.NoError(t, m.put(&p))

	var order []int
	for _, e := range contents(t, m) {
		order = append(order, int(e.key.SeqNum()))
	}
	require.Equal(t, []int{10, 20, 25, 30, 40, 50}, order)
}

func TestAscendingAddsSurviveAnOldTail(t *testing.T) {
	m := New(1 << 20)
	for i := range 300 {
		require.NoError(t, add(m, numbered(2*i), nil))
		// As a race leaves it: some earlier node of the level, or none.
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		level := rng.IntN(4)
		earlier := append([]node{head}, levelOf(m, level)...)
		m.tails[level].Store(uint32(earlier[rng.IntN(len(earlier))]))
	}
	require.Len(t, contents(t, m), 300)
	requireTowers(t, m)
}
