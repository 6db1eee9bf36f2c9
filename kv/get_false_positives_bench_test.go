package kv

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/budget"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv/metrics"
)

// youngStoreIn makes, on o.fs, a store of a settled level under young files, each of which has keys all over the
// others', with all blocks cached. Keys have even numbers, those between them are absent.
func youngStoreIn(tb testing.TB, keys, young int, o Options) *DB {
	tb.Helper()
	o.CacheSize, o.MemtableSize = 512<<20, 256<<20
	o.L0CompactionThreshold = young + 1
	db := openDir(tb, "db", &o)
	var key []byte
	for i := range keys {
		key = youngKey(key, 2*i)
		require.NoError(tb, db.Set(key, key, Async))
	}
	require.NoError(tb, db.Compact(tb.Context(), nil, nil))
	rng := rand.New(rand.NewPCG(1, 1))
	for range young {
		for _, i := range []int{0, keys - 1} {
			require.NoError(tb, db.Set(youngKey(nil, 2*i), key, Async))
		}
		for range keys / 100 {
			key = youngKey(key, 2*rng.IntN(keys))
			require.NoError(tb, db.Set(key, key, Async))
		}
		require.NoError(tb, db.Flush(tb.Context()))
	}
	require.Equal(tb, young, db.Metrics().Levels[0].Runs)
	return db
}

func youngKey(dst []byte, i int) []byte { return fmt.Appendf(dst[:0], "key%013d", i) }

// zipf draws numbers below n, the i-th of which comes with a chance in proportion to i^-theta.
type zipf struct {
	sums []float64
	rng  *rand.Rand
}

func newZipf(n int, theta float64, seed uint64) *zipf {
	z := &zipf{make([]float64, n), rand.New(rand.NewPCG(seed, 2))}
	sum := 0.0
	for i := range z.sums {
		sum += math.Pow(float64(i+1), -theta)
		z.sums[i] = sum
	}
	return z
}

func (z *zipf) next() int {
	i, _ := slices.BinarySearch(z.sums, z.rng.Float64()*z.sums[len(z.sums)-1])
	return min(i, len(z.sums)-1)
}

// absentByZipf looks up absent keys of a youngStoreIn, by Zipf's law.
type absentByZipf struct {
	zipf  *zipf
	order []int // which key is the first favourite, which the second
}

func newAbsentByZipf(keys int, seed uint64) *absentByZipf {
	return &absentByZipf{newZipf(keys, 0.99, seed), rand.New(rand.NewPCG(seed, 3)).Perm(keys)}
}

// ask makes so many lookups more, and returns what they did.
func (a *absentByZipf) ask(tb testing.TB, db *DB, lookups int) metrics.Lookups {
	var key []byte
	return readsOf(db, func() {
		for range lookups {
			key = youngKey(key, 2*a.order[a.zipf.next()]+1)
			if ok, err := db.Has(key); ok || err != nil {
				tb.Fatal(ok, err)
			}
		}
	})
}

// shareGone returns which share of false positives was remembered.
func shareGone(c metrics.Lookups) float64 {
	return float64(c.FilterRemembered) / float64(c.FilterRemembered+c.FilterFalsePositives)
}

func TestRepeatedFalsePositivesAreGone(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "lookups of one goroutine")
	const keys = 20_000
	db := youngStoreIn(t, keys, 16, Options{FalsePositiveMemory: budget.DefaultFalsePositives / 16,
		harness: harness.Harness{FS: vfs.NewMem()}})
	defer func() { require.NoError(t, db.Close()) }()
	a := newAbsentByZipf(keys, 1)
	a.ask(t, db, keys)
	c := a.ask(t, db, keys)
	require.Greater(t, shareGone(c), 0.75)
	require.InDelta(t, 0.0095, c.FalsePositiveRate(), 0.005, "what is remembered is a false positive still")
	checkIdentities(t, db.Metrics())
}

// BenchmarkFalsePositivesGone asks a store of a million keys under 16 young files for as many absent ones, by Zipf's
// law, and says which part of the false positives was remembered in the second million lookups and in the fifth. A few
// favourites decide that, so that it is the mean over several choices of them; the store is opened anew for each. The
// last size is one that holds everything: what is not gone with it are false positives that come for the first time.
func BenchmarkFalsePositivesGone(b *testing.B) {
	const million, choices = 1_000_000, 8
	o := Options{harness: harness.Harness{FS: vfs.NewMem()}}
	require.NoError(b, youngStoreIn(b, million, 16, o).Close())
	for _, times := range []int64{1, 4, 256} {
		size := times * budget.DefaultFalsePositives
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			for b.Loop() {
				var second, fifth metrics.Lookups
				for seed := range uint64(choices) {
					o.FalsePositiveMemory, o.CacheSize, o.L0CompactionThreshold = size, 512<<20, 17
					db := openDir(b, "db", &o)
					a := newAbsentByZipf(million, seed)
					a.ask(b, db, million)
					second = second.Add(a.ask(b, db, million))
					a.ask(b, db, 2*million)
					fifth = fifth.Add(a.ask(b, db, million))
					require.NoError(b, db.Close())
				}
				b.ReportMetric(100*shareGone(second), "%second-million")
				b.ReportMetric(100*shareGone(fifth), "%fifth-million")
			}
		})
	}
}

// BenchmarkYoungUniform looks keys up that are there, and keys between them, all equally often, under 16 young files:
// with a memory of false positives and without one, and with salted filters.
func BenchmarkYoungUniform(b *testing.B) {
	const keys = 200_000
	for name, o := range map[string]Options{"remembering=false": {FalsePositiveMemory: -1}, "remembering=true": {},
		"salted": {Filter: mustFilter("salted:blocked:10")}} {
		b.Run(name, func(b *testing.B) {
			o.harness.FS = vfs.NewMem()
			db := youngStoreIn(b, keys, 16, o)
			defer func() { require.NoError(b, db.Close()) }()
			for absent, name := range []string{"present", "absent"} {
				asked := make([][]byte, 1<<16)
				rng := rand.New(rand.NewPCG(2, 2))
				for i := range asked {
					asked[i] = youngKey(nil, 2*rng.IntN(keys)+absent)
				}
				dst := make([]byte, 0, 200)
				for _, k := range asked {
					dst, _ = db.AppendGet(dst[:0], k)
				}
				b.Run(name, func(b *testing.B) {
					i := 0
					for b.Loop() {
						dst, _ = db.AppendGet(dst[:0], asked[i&(len(asked)-1)])
						i++
					}
				})
			}
		})
	}
}
