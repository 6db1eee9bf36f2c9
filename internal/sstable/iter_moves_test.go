package sstable

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/cache"
	"github.com/siftkv/siftkv/internal/scale"
)

// runVersions returns versions in order, some keys with so many that they cross blocks,
// and values from none to more than a piece that is read ahead.
func runVersions(rng *rand.Rand, n int) (vs []version) {
	for i := range n {
		versions := 1
		if rng.IntN(40) == 0 {
			versions = 1 + rng.IntN(60)
		}
		for v := range versions {
			size := rng.IntN(120)
			if rng.IntN(400) == 0 {
				size = rng.IntN(2 * filePace.most)
			}
			value := bytes.Repeat([]byte{byte(rng.Uint32())}, size)
			vs = append(vs, version{base.MakeKey(fmt.Appendf(nil, "k%06d", 2*i), base.SeqNum(1000-v), base.KindSet),
				value})
		}
	}
	return vs
}

// An iterator that goes on, back, elsewhere and to other files gives what is there,
// whichever blocks are cached, read one by one or read ahead.
func TestIteratorsMoveAnywhereWhileTheyReadAhead(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for _, size := range []int64{0, 256 << 10, 8 << 20} {
		blocks := cache.New(size)
		var readers []*Reader
		var contents [][]version
		for _, c := range []Compression{NoCompression, Snappy, Zstd} {
			for _, partition := range []int{64, 1 << 20} {
				vs := runVersions(rng, 2500)
				data, _ := writeFile(t, &WriterOptions{Compression: c, BlockSize: 512, IndexPartition: partition,
					Filter: mustParse("none")}, vs)
				r, err := NewReader(bytes.NewReader(data), int64(len(data)), &ReaderOptions{Cache: blocks})
				require.NoError(t, err)
				readers, contents = append(readers, r), append(contents, vs)
			}
		}
		var it Iter
		for range scale.Count(scale.Fewer(15, 5), 40) {
			n := rng.IntN(len(readers))
			if rng.IntN(3) == 0 {
				it.Release()
			}
			it.Init(readers[n], IterOptions{Sequential: rng.IntN(4) == 0})
			moveAbout(t, rng, &it, contents[n])
		}
		for _, r := range readers {
			require.NoError(t, r.Close())
		}
		blocks.Release()
	}
}

// moveAbout moves an iterator over vs as chance has it.
func moveAbout(t *testing.T, rng *rand.Rand, it *Iter, vs []version) {
	at := -1
	check := func(ok bool) {
		require.NoError(t, it.Error())
		require.Equal(t, at >= 0 && at < len(vs), ok)
		require.Equal(t, ok, it.Valid())
		if ok && (base.Compare(vs[at].key, it.Key()) != 0 || !bytes.Equal(vs[at].value, it.Value())) {
			require.Fail(t, "another version", "want %s, got %s", vs[at].key, it.Key())
		}
	}
	for range 6 {
		k := vs[rng.IntN(len(vs))].key.Clone()
		if rng.IntN(3) == 0 {
			k.User = append(k.User, 'x')
		}
		behind := sort.Search(len(vs), func(i int) bool { return base.Compare(vs[i].key, k) >= 0 })
		switch rng.IntN(5) {
		case 0:
			at = 0
			check(it.First())
		case 1:
			at = len(vs) - 1
			check(it.Last())
		case 2, 3:
			at = behind
			check(it.SeekGE(k))
		case 4:
			at = behind - 1
			check(it.SeekLT(k))
		}
		for range 3 {
			forward := rng.IntN(3) > 0
			for range rng.IntN(600) {
				if !it.Valid() {
					break
				}
				if forward {
					at++
					check(it.Next())
				} else {
					at--
					check(it.Prev())
				}
			}
		}
	}
}
