package cache

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHitReturnsTheBlockAndAMissNothing(t *testing.T) {
	c := New(1 << 20)
	var s Slot
	require.Nil(t, s.Get())
	b := c.Add(1, &s, []byte("data"))
	require.Same(t, b, s.Get())
	require.Same(t, b, c.Add(1, &s, []byte("data")), "the first of two readers wins")
	c.Drop(1, &s)
	require.Nil(t, s.Get())
	require.Equal(t, "data", string(b.Data), "a holder keeps its bytes")
	used, n := c.Used()
	require.Zero(t, used)
	require.Zero(t, n)
}

func TestCapacityIsABound(t *testing.T) {
	const capacity = 8 << 20
	c := New(capacity)
	slots := make([]Slot, 5000)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20000 {
		i := rng.IntN(len(slots))
		if slots[i].Get() == nil {
			c.Add(uint64(i), &slots[i], make([]byte, 1+rng.IntN(16<<10)))
		}
		if rng.IntN(50) == 0 {
			j := rng.IntN(len(slots))
			c.Drop(uint64(j), &slots[j])
		}
	}
	used, n := c.Used()
	require.LessOrEqual(t, used, int64(capacity))
	require.Greater(t, used, int64(capacity*8/10), "a full cache is used")
	var sum int64
	held := 0
	for i := range slots {
		if b := slots[i].Get(); b != nil {
			sum += b.size()
			held++
		}
	}
	require.Equal(t, used, sum)
	require.Equal(t, n, held)

	c.Resize(1 << 20)
	used, _ = c.Used()
	require.LessOrEqual(t, used, int64(1<<20))
}

func TestAScanDoesNotPushOutWhatIsReadAgain(t *testing.T) {
	c := New(1 << 20)
	hot := make([]Slot, 100)
	for i := range hot {
		c.Add(uint64(i), &hot[i], make([]byte, 4096))
	}
	cold := make([]Slot, 10000)
	for i := range cold {
		for j := range hot {
			hot[j].Get()
		}
		c.Add(uint64(1000+i), &cold[i], make([]byte, 4096))
	}
	for j := range hot {
		require.NotNil(t, hot[j].Get(), "hot block %d", j)
	}
}

func TestOversizedBlocksAreNotKept(t *testing.T) {
	c := New(1 << 20)
	var s Slot
	require.Len(t, c.Add(1, &s, make([]byte, 2<<20)).Data, 2<<20)
	require.Nil(t, s.Get())
	var none *Cache
	require.Len(t, none.Add(1, &s, make([]byte, 10)).Data, 10)
	require.Nil(t, s.Get())
	none.Drop(1, &s)
}

func TestConcurrentReadersAndWriters(t *testing.T) {
	c := New(1 << 20)
	slots := make([]Slot, 1000)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			for range 20000 {
				i := rng.IntN(len(slots))
				b := slots[i].Get()
				if b == nil {
					data := make([]byte, 1000)
					data[0] = byte(i)
					b = c.Add(uint64(i), &slots[i], data)
				}
				if b.Data[0] != byte(i) {
					t.Errorf("slot %d holds block %d", i, b.Data[0])
					return
				}
				if rng.IntN(100) == 0 {
					c.Drop(uint64(i), &slots[i])
				}
			}
		})
	}
	wg.Wait()
	used, _ := c.Used()
	require.LessOrEqual(t, used, int64(1<<20))
}

func BenchmarkHit(b *testing.B) {
	c := New(64 << 20)
	slots := make([]Slot, 1<<12)
	for i := range slots {
		c.Add(uint64(i), &slots[i], make([]byte, 4096))
	}
	i := 0
	for b.Loop() {
		if slots[i&(len(slots)-1)].Get() == nil {
			b.Fatal("a miss")
		}
		i += 617
	}
}
