package blockindex

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sort"
	"testing"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/stretchr/testify/require"
)

// build makes an index whose separators are keys, blocks of i+1 bytes.
func build(tb testing.TB, keys [][]byte, first int, start uint64) Index {
	tb.Helper()
	var b Builder
	b.Reset(first, start)
	end := start
	for i, k := range keys {
		end += uint64(i + 1)
		b.Add(k, end)
	}
	x, err := Decode(b.Append(nil))
	require.NoError(tb, err)
	require.Equal(tb, len(keys), x.Len())
	require.Equal(tb, end, x.End())
	return x
}

// keySets are shapes that the prefix array finds easy and hard.
func keySets(rng *rand.Rand) map[string][][]byte {
	sets := map[string][][]byte{"none": nil, "one": {[]byte("k")}, "one empty": {{}}}
	gen := map[string]func(i int) []byte{
		"random":        func(int) []byte { return fmt.Appendf(nil, "%016x", rng.Uint64()) },
		"short":         func(int) []byte { return []byte{byte(rng.IntN(256)), byte(rng.IntN(3))}[:rng.IntN(3)] },
		"common prefix": func(i int) []byte { return fmt.Appendf(nil, "user/%08d", i*3) },
		"tied prefixes": func(i int) []byte { return fmt.Appendf(nil, "k%d-the-same-for-long-%06d", i/100, i*7) },
		"all of the range": func(int) []byte {
			return binary.BigEndian.AppendUint64(nil, rng.Uint64())
		},
		"crowded": func(i int) []byte { // most of them in one range of the guide
			return binary.BigEndian.AppendUint64(nil, uint64(i)<<(uint(i)%7/6*50))
		},
		"zeros": func(int) []byte { return make([]byte, rng.IntN(20)) },
		"after zeros": func(i int) []byte { // the prefixes of all are zero
			if i == 0 {
				return nil
			}
			return fmt.Append(make([]byte, 8), i)
		},
		"binary": func(int) []byte {
			return []byte{0, byte(rng.IntN(4)), 0xff, byte(rng.IntN(4)), 0, 0, byte(rng.IntN(9))}
		},
		"prefixes nested": func(i int) []byte { return bytes.Repeat([]byte("ab"), i%40) },
	}
	for name, f := range gen {
		var keys [][]byte
		for i := range 700 {
			keys = append(keys, f(i))
		}
		slices.SortFunc(keys, bytes.Compare)
		sets[name] = slices.CompactFunc(keys, bytes.Equal)
	}
	sets["versions of one key"] = slices.Repeat([][]byte{[]byte("k")}, 700)
	return sets
}

func TestFindAgainstALinearSearch(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for name, keys := range keySets(rng) {
		t.Run(name, func(t *testing.T) {
			x := build(t, keys, 5, 100)
			guided := x.Guided()
			require.LessOrEqual(t, guided.Size()-x.Size(), 4*(len(keys)+1))
			probes := slices.Clone(keys)
			for _, k := range keys {
				probes = append(probes, append(bytes.Clone(k), 0),
					append(bytes.Clone(k), bytes.Repeat([]byte{0xff}, rng.IntN(20))...))
				if len(k) > 0 {
					probes = append(probes, k[:len(k)-1])
					mutant := bytes.Clone(k)
					mutant[rng.IntN(len(k))] += byte(1 + rng.IntN(255))
					probes = append(probes, mutant)
				}
			}
			probes = append(probes, nil, []byte{0}, bytes.Repeat([]byte{0xff}, 30))
			for _, p := range probes {
				want := sort.Search(len(keys), func(i int) bool { return bytes.Compare(keys[i], p) >= 0 })
				got := x.Find(p)
				require.Equal(t, want, got, "%q", p)
				require.Equal(t, want, guided.Find(p), "%q, guided", p)
				if got < x.Len() {
					require.Equal(t, bytes.Equal(keys[got], p), bytes.Equal(x.AppendSeparator(nil, got), p))
				}
			}
			for i, k := range keys {
				require.Equal(t, string(k), string(x.AppendSeparator(nil, i)))
				off, n := x.Block(i)
				require.EqualValues(t, 100+i*(i+1)/2, off)
				require.Equal(t, i+1, n)
			}
			require.Equal(t, 5, x.First())
		})
	}
}

func TestSeparatorLiesBetween(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	random := func() []byte {
		k := make([]byte, rng.IntN(6))
		for i := range k {
			k[i] = []byte{0, 1, 'a', 'b', 'c', 0xfe, 0xff}[rng.IntN(7)]
		}
		return k
	}
	shorter, pairs := 0, scale.Count(50_000, 200_000)
	for range pairs {
		last, next := random(), random()
		if bytes.Compare(last, next) > 0 {
			last, next = next, last
		}
		s := AppendSeparator([]byte("x"), last, next)[1:]
		require.GreaterOrEqual(t, bytes.Compare(s, last), 0, "%q %q %q", last, s, next)
		if !bytes.Equal(last, next) {
			require.Negative(t, bytes.Compare(s, next), "%q %q %q", last, s, next)
		} else {
			require.Equal(t, last, s, "a key that crosses blocks is its own separator")
		}
		require.LessOrEqual(t, len(s), len(last))
		if len(s) < len(last) {
			shorter++
		}
		end := AppendSeparator(nil, last, nil)
		require.GreaterOrEqual(t, bytes.Compare(end, last), 0)
	}
	require.Greater(t, shorter, pairs/4)
	require.Equal(t, "k2", string(AppendSeparator(nil, []byte("k1xxxx"), []byte("k2xxxx"))))
}

func TestEveryTruncationAndBitFlipIsAnErrorOrSafe(t *testing.T) {
	var b Builder
	b.Reset(2, 64)
	for i, k := range []string{"app", "apple", "application-very-long", "apq", "b"} {
		b.Add([]byte(k), uint64(100+50*i))
	}
	good := b.Append(nil)
	for n := range good {
		_, err := Decode(good[:n])
		require.ErrorIs(t, err, base.ErrCorruption)
	}
	for bit := range 8 * len(good) {
		bad := bytes.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		exercise(bad)
	}
}

// exercise asks an index everything it answers.
func exercise(data []byte) bool {
	x, err := Decode(data)
	if err != nil {
		return false
	}
	guided := x.Guided()
	for i := range x.Len() {
		s := x.AppendSeparator(nil, i)
		x.Block(i)
		x.Find(s)
		guided.Find(s)
	}
	for _, k := range []string{"", "a", "apple", "apple\x00", "zzzzzzzzzzzzzzzz"} {
		x.Find([]byte(k))
		guided.Find([]byte(k))
	}
	return true
}

func FuzzDecode(f *testing.F) {
	var b Builder
	f.Add(b.Append(nil))
	b.Add([]byte("common-a"), 10)
	b.Add([]byte("common-b"), 30)
	f.Add(b.Append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !exercise(data) {
			return
		}
		x, _ := Decode(data)
		for i := 1; i < x.Len(); i++ {
			if bytes.Compare(x.AppendSeparator(nil, i-1), x.AppendSeparator(nil, i)) > 0 {
				t.Fatal("an accepted index is out of order")
			}
		}
	})
}

func TestGolden(t *testing.T) {
	var b Builder
	b.Reset(7, 4096)
	b.Add([]byte("user/alice"), 5000)
	b.Add([]byte("user/bob"), 6000)
	b.Add([]byte("user/carol-the-third"), 9000)
	golden.File(t, filepath.Join("testdata", "index.golden"), hex.Dump(b.Append(nil)))
}

func BenchmarkFind(b *testing.B) {
	for _, n := range []int{256, 4096, 65536, 1 << 20} {
		rng := rand.New(rand.NewPCG(1, 2))
		keys := make([][]byte, n)
		for i := range keys {
			keys[i] = fmt.Appendf(nil, "%016x", rng.Uint64())
		}
		slices.SortFunc(keys, bytes.Compare)
		x := build(b, keys, 0, 0)
		rng.Shuffle(n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		guided := x.Guided()
		for name, x := range map[string]*Index{"": &x, "guided/": &guided} {
			b.Run(fmt.Sprintf("%sblocks=%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					x.Find(keys[i])
					if i++; i == n {
						i = 0
					}
				}
			})
		}
	}
}
