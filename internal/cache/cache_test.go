package cache

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// add puts n bytes of b into the slot and reports whether the cache took them.
func add(c *Cache, key uint64, s *Slot, n int, b byte) bool {
	data := c.Reserve(key, s, n, nil)
	if data == nil {
		return false
	}
	copy(data, bytes.Repeat([]byte{b}, n))
	s.Publish()
	s.Unpin()
	return true
}

// read reports whether a block is in the slot, and fails if it is not n bytes of b.
func read(t *testing.T, c *Cache, s *Slot, n int, b byte) bool {
	data, ok := c.Pin(s)
	if !ok {
		return false
	}
	defer s.Unpin()
	if len(data) != n {
		t.Errorf("%d bytes, want %d", len(data), n)
		return true
	}
	for i := 0; i < n; i += 61 {
		if data[i] != b {
			t.Errorf("byte %d is %d, want %d", i, data[i], b)
			return true
		}
	}
	return true
}

func TestHitReturnsTheBlockAndAMissNothing(t *testing.T) {
	c := New(1 << 20)
	defer c.Release()
	var s Slot
	require.False(t, read(t, c, &s, 4, 1))
	require.True(t, add(c, 1, &s, 4, 1))
	require.True(t, read(t, c, &s, 4, 1))
	require.False(t, add(c, 1, &s, 4, 2), "the first of two readers wins")
	require.True(t, read(t, c, &s, 4, 1))
	c.Drop(1, &s, nil)
	require.False(t, read(t, c, &s, 4, 1))
	used, n := c.Used()
	require.Zero(t, used)
	require.Zero(t, n)
}

// Blocks that are cheap to read again fill free room. After that one goes in only if it was missed not long before.
func TestACheapBlockNeedsRoomOrASecondMiss(t *testing.T) {
	const n, blocks = 4 << 10, 256
	c := New(n * blocks)
	defer c.Release()
	slots := make([]Slot, 4*blocks)
	cheap := func(i int) bool {
		if c.ReserveMore(uint64(i), &slots[i], n, 0, true, nil) == nil {
			return false
		}
		slots[i].Publish()
		slots[i].Unpin()
		return true
	}
	at := 0
	for ; cheap(at); at++ {
		require.True(t, slots[at].Filled())
	}
	require.InDelta(t, blocks*7/8, at, 1)
	require.False(t, slots[at].Filled())
	require.True(t, cheap(at), "missed a moment ago")
	require.True(t, slots[at].Filled())
	missed := at + 1
	require.False(t, cheap(missed))
	for i := range blocks/2 - 1 {
		require.False(t, cheap(missed+1+i), "never missed before")
	}
	require.True(t, cheap(missed), "half of the cache was missed in between")
	require.False(t, cheap(missed+blocks))
	require.False(t, cheap(missed+1), "more than half")
	require.True(t, add(c, 1000, &slots[1000], n, 1), "not cheap")
	checkSum(t, c, slots)
	for i := range slots {
		c.Drop(uint64(i), &slots[i], nil)
	}
	require.True(t, cheap(1001), "there is room again")
}

func TestASlotThatIsBeingFilledIsAMiss(t *testing.T) {
	c := New(1 << 20)
	defer c.Release()
	var s Slot
	require.NotNil(t, c.Reserve(1, &s, 10, nil))
	require.False(t, read(t, c, &s, 10, 0))
	require.Nil(t, c.Reserve(1, &s, 10, nil))
	c.Abandon(1, &s, nil)
	used, n := c.Used()
	require.Zero(t, used)
	require.Zero(t, n)
	require.True(t, add(c, 1, &s, 10, 7))
	require.True(t, read(t, c, &s, 10, 7))
}

func TestPinsHaveABound(t *testing.T) {
	c := New(1 << 20)
	defer c.Release()
	var s Slot
	require.True(t, add(c, 1, &s, 10, 1))
	pins := 0
	for {
		if _, ok := c.Pin(&s); !ok {
			break
		}
		pins++
		require.Less(t, pins, 1<<12)
	}
	for range pins {
		s.Unpin()
	}
	require.True(t, read(t, c, &s, 10, 1))
	c.Drop(1, &s, nil)
	require.False(t, read(t, c, &s, 10, 1))
}

func TestCapacityIsABound(t *testing.T) {
	for _, capacity := range []int64{1 << 20, 33 << 20} {
		c := New(capacity)
		slots := make([]Slot, 20*capacity>>17)
		sizes := make([]int, len(slots))
		rng := rand.New(rand.NewPCG(1, 1))
		for range 5 * len(slots) {
			i := rng.IntN(len(slots))
			if !read(t, c, &slots[i], sizes[i], byte(i)) {
				sizes[i] = 1 + rng.IntN(16<<10)
				require.True(t, add(c, uint64(i), &slots[i], sizes[i], byte(i)))
			}
			if rng.IntN(50) == 0 {
				j := rng.IntN(len(slots))
				c.Drop(uint64(j), &slots[j], nil)
			}
		}
		used, n := c.Used()
		require.LessOrEqual(t, used, capacity)
		require.Greater(t, used, capacity*8/10, "a full cache is used")
		checkSum(t, c, slots)
		c.Resize(capacity / 2)
		used, _ = c.Used()
		require.LessOrEqual(t, used, capacity/2)
		checkSum(t, c, slots)
		c.Resize(capacity)
		for i := range slots {
			if !slots[i].Filled() {
				sizes[i] = 1 + rng.IntN(16<<10)
				add(c, uint64(i), &slots[i], sizes[i], byte(i))
			}
			read(t, c, &slots[i], sizes[i], byte(i))
		}
		grown, _ := c.Used()
		require.Greater(t, grown, max(used, capacity*8/10))
		_ = n
		c.Release()
	}
}

// checkSum holds what the cache counts against what its slots have.
func checkSum(t *testing.T, c *Cache, slots []Slot) {
	var sum int64
	held := 0
	for i := range slots {
		if w := slots[i].word.Load(); !w.empty() {
			sum += int64(unitsOf(w.length())) << unitShift
			held++
		}
	}
	used, n := c.Used()
	require.Equal(t, sum, used)
	require.Equal(t, held, n)
}

func TestAScanDoesNotPushOutWhatIsReadAgain(t *testing.T) {
	c := New(1 << 20)
	defer c.Release()
	hot := make([]Slot, 100)
	for i := range hot {
		add(c, uint64(i), &hot[i], 4096, byte(i))
	}
	cold := make([]Slot, 10000)
	for i := range cold {
		for j := range hot {
			if _, ok := c.Pin(&hot[j]); ok {
				hot[j].Unpin()
			}
		}
		add(c, uint64(1000+i), &cold[i], 4096, 1)
	}
	for j := range hot {
		require.True(t, read(t, c, &hot[j], 4096, byte(j)), "hot block %d", j)
	}
}

func TestOversizedBlocksAreNotKept(t *testing.T) {
	c := New(1 << 20)
	defer c.Release()
	var s Slot
	require.Nil(t, c.Reserve(1, &s, 2<<20, nil))
	require.Nil(t, c.Reserve(1, &s, 1<<20, nil))
	require.Nil(t, c.Reserve(1, &s, 0, nil))
	require.False(t, read(t, c, &s, 0, 0))
	var none *Cache
	require.Nil(t, none.Reserve(1, &s, 10, nil))
	none.Drop(1, &s, nil)
	none.Release()
	require.Nil(t, none.Retain())
	nothing := New(-5)
	require.Nil(t, nothing.Reserve(1, &s, 10, nil))
	nothing.Release()
	require.Nil(t, nothing.Retain())
}

func TestMaxBlockIsTheLargestThatIsKept(t *testing.T) {
	for _, capacity := range []int64{0, 1, 255, 256, 1000, 64 << 10, 1<<20 + 100, 40 << 20, 1 << 30} {
		c := New(capacity)
		for _, now := range []int64{capacity, capacity / 3, capacity} {
			c.Resize(now)
			most := c.MaxBlock()
			var s Slot
			require.Equal(t, most > 0, add(c, 1, &s, max(most, 1), 1), "%d of %d bytes", now, capacity)
			c.Drop(1, &s, nil)
			require.False(t, add(c, 1, &s, most+1, 1), "%d of %d bytes", now, capacity)
		}
		c.Release()
	}
	var none *Cache
	require.Zero(t, none.MaxBlock())
}

// A pinned block stays where it is, whatever is added, and what is added goes around
// it.
func TestPinnedBlocksStay(t *testing.T) {
	c := New(1 << 20)
	defer c.Release()
	slots := make([]Slot, 4000)
	var pinned []int
	held := map[int][]byte{}
	for round := range 5 {
		for i := range slots {
			if !slots[i].Filled() && !add(c, uint64(i), &slots[i], 1000+i%700, byte(i)) {
				continue
			}
			if i%400 == 10*round {
				data, ok := c.Pin(&slots[i])
				require.True(t, ok)
				pinned = append(pinned, i)
				held[i] = data
			}
		}
		c.Resize([]int64{1 << 20, 600 << 10}[round%2])
	}
	for _, i := range pinned {
		require.Equal(t, len(held[i]), bytes.Count(held[i], []byte{byte(i)}))
		slots[i].Unpin()
	}
	checkSum(t, c, slots)
	require.True(t, add(c, 9999, new(Slot), 4000, 1))
}

// When all is pinned, a block is refused and nothing waits.
func TestAllPinned(t *testing.T) {
	c := New(64 << 10)
	defer c.Release()
	slots := make([]Slot, 100)
	kept := 0
	for i := range slots {
		if data := c.Reserve(uint64(i), &slots[i], 1000, nil); data != nil {
			slots[i].Publish()
			kept++
		}
	}
	require.Equal(t, 64, kept)
	for i := range slots[:kept] {
		slots[i].Unpin()
	}
	require.True(t, add(c, 1, &slots[99], 1000, 1))
}

func TestConcurrentReadersAndWriters(t *testing.T) {
	c := New(1 << 20)
	defer c.Release()
	slots := make([]Slot, 1000)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			for n := range 5000 {
				i := rng.IntN(len(slots))
				if size := 1000 + i%3000; !read(t, c, &slots[i], size, byte(i)) {
					add(c, uint64(i), &slots[i], size, byte(i))
				}
				if g == 0 && n%1000 == 0 {
					c.Resize(int64(512+rng.IntN(512)) << 10)
				}
			}
		})
	}
	wg.Wait()
	used, _ := c.Used()
	require.LessOrEqual(t, used, int64(1<<20))
	checkSum(t, c, slots)
}

func BenchmarkHit(b *testing.B) {
	c := New(64 << 20)
	defer c.Release()
	slots := make([]Slot, 1<<12)
	for i := range slots {
		add(c, uint64(i), &slots[i], 4096, 1)
	}
	i := 0
	for b.Loop() {
		s := &slots[i&(len(slots)-1)]
		if _, ok := c.Pin(s); !ok {
			b.Fatal("a miss")
		}
		s.Unpin()
		i += 617
	}
}

// One miss of a full cache: evict, fill, publish. The limit is the copy of 4 KiB.
func BenchmarkFill(b *testing.B) {
	c := New(16 << 20)
	defer c.Release()
	slots := make([]Slot, 1<<13)
	block := make([]byte, 4160)
	i := 0
	for b.Loop() {
		s := &slots[i&(len(slots)-1)]
		if data := c.Reserve(uint64(i), s, len(block), nil); data != nil {
			copy(data, block)
			s.Publish()
			s.Unpin()
		}
		i++
	}
}
