package memtable

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/siftkv/siftkv/internal/base"
)

// Keys of 16 bytes and values of 100, as kvbench has them. Even numbers are
// present, odd ones lie between them.
const (
	benchKeyLen   = 16
	benchValueLen = 100
)

func benchKey(dst []byte, i uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, "12345678"[:benchKeyLen-8]...), i)
}

// spread makes the first words of keys differ, as those of hashed keys do.
func spread(dst []byte, i uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, i*0x9e3779b97f4a7c15), i)
}

var benchKeys = []struct {
	name string
	key  func(dst []byte, i uint64) []byte
}{{"prefixed", benchKey}, {"spread", spread}}

var benchSizes = []int{100_000, 1_000_000}

func filled(b *testing.B, n int, key func([]byte, uint64) []byte) *Memtable {
	b.Helper()
	m := New(n * 200)
	value := make([]byte, benchValueLen)
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		if err := m.Add(base.MakeKey(key(nil, uint64(2*i)), base.SeqNum(i), base.KindSet), value); err != nil {
			b.Fatal(err)
		}
	}
	return m
}

func BenchmarkGet(b *testing.B) {
	for _, keys := range benchKeys {
		for _, n := range benchSizes {
			m := filled(b, n, keys.key)
			for odd, name := range []string{"present", "absent"} {
				b.Run(fmt.Sprintf("%s/keys=%s/n=%d", name, keys.name, n), func(b *testing.B) {
					rng := rand.New(rand.NewPCG(3, 4))
					var key [benchKeyLen]byte
					b.ReportAllocs()
					for b.Loop() {
						i := 2*rng.Uint64N(uint64(n)) + uint64(odd)
						_, _, ok := m.Get(keys.key(key[:0], i), base.MaxSeqNum)
						if ok != (odd == 0) {
							b.Fatal("wrong answer")
						}
					}
				})
			}
		}
	}
}

func BenchmarkIter(b *testing.B) {
	m := filled(b, 100_000, benchKey)
	for name, moves := range map[string]struct{ start, move func(*Iter) bool }{
		"Next": {(*Iter).First, (*Iter).Next},
		"Prev": {(*Iter).Last, (*Iter).Prev},
	} {
		b.Run(name, func(b *testing.B) {
			var it Iter
			it.Init(m)
			b.ReportAllocs()
			for b.Loop() {
				if !moves.move(&it) {
					moves.start(&it)
				}
				if len(it.Key().User) != benchKeyLen || len(it.Value()) != benchValueLen {
					b.Fatal("wrong entry")
				}
			}
		})
	}
}

// BenchmarkAdd fills tables of n entries, one after the other.
func BenchmarkAdd(b *testing.B) {
	for _, n := range benchSizes {
		perm := rand.New(rand.NewPCG(1, 2)).Perm(n)
		numbers := map[string]func(i int) uint64{
			"sequential": func(i int) uint64 { return uint64(i) },
			"random":     func(i int) uint64 { return uint64(perm[i]) },
		}
		for order, number := range numbers {
			b.Run(fmt.Sprintf("%s/n=%d", order, n), func(b *testing.B) {
				var key [benchKeyLen]byte
				value := make([]byte, benchValueLen)
				m, i := New(n*200), 0
				b.ReportAllocs()
				for b.Loop() {
					if i == n {
						m, i = New(n*200), 0
					}
					k := base.MakeKey(benchKey(key[:0], number(i)), base.SeqNum(i), base.KindSet)
					if err := m.Add(k, value); err != nil {
						b.Fatal(err)
					}
					i++
				}
			})
		}
	}
}

// BenchmarkAddParallel adds random keys from all processors to one table.
func BenchmarkAddParallel(b *testing.B) {
	var m atomic.Pointer[Memtable]
	var seed atomic.Uint64
	const capacity = 200_000_000
	m.Store(New(capacity))
	b.RunParallel(func(pb *testing.PB) {
		rng := rand.New(rand.NewPCG(seed.Add(1), 0))
		var key [benchKeyLen]byte
		value := make([]byte, benchValueLen)
		for pb.Next() {
			table := m.Load()
			k := base.MakeKey(benchKey(key[:0], rng.Uint64()), 1, base.KindSet)
			for table.Add(k, value) != nil {
				m.CompareAndSwap(table, New(capacity))
				table = m.Load()
			}
		}
	})
}
