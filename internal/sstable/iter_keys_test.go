package sstable

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/scale"
)

// longValues are versions of all kinds, with values about as long as what is left out, and others.
func longValues(rng *rand.Rand) (vs []version) {
	for i := range 300 {
		n := []int{0, 8, leastLeftOut - 1, leastLeftOut, 1000, 20_000}[rng.IntN(6)]
		kind := []base.Kind{base.KindSet, base.KindSet, base.KindMerge, base.KindDelete, base.KindSetTTL}[rng.IntN(5)]
		value := bytes.Repeat([]byte{byte(i)}, n)
		switch kind {
		case base.KindSetTTL:
			value = append(base.AppendExpiry(nil, 1<<40+uint64(i)), value...)
		case base.KindDelete:
			value = nil
		}
		vs = append(vs, version{base.MakeKey(fmt.Appendf(nil, "key%05d", i), base.SeqNum(1+i), kind), value})
	}
	return vs
}

// An iterator for keys says of each entry what another says, but for the bytes of long values: in files of all
// compressions, cached or not, in whatever way it comes to the block, and in a buffer that had others before.
func TestIteratorsForKeys(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for n := range 12 {
		vs := longValues(rng)
		o := randomOptions(rng)
		o.BlockSize = []int{64, 4 << 10, 64 << 10}[n%3]
		data, _ := writeFile(t, o, vs)
		r := openBytes(t, data, &ReaderOptions{CacheSize: []int64{-1, 64 << 10, 8 << 20}[n/3%3]})
		keys := r.NewIter(IterOptions{KeysOnly: true})
		require.False(t, keys.Valid())
		at := -1
		for range scale.Count(1000, 4000) {
			var ok bool
			switch rng.IntN(16) {
			case 0:
				ok, at = keys.First(), 0
			case 1:
				ok, at = keys.Last(), len(vs)-1
			case 2, 3:
				at = rng.IntN(len(vs))
				ok = keys.SeekGE(vs[at].key)
			case 4:
				at = rng.IntN(len(vs)) - 1
				ok = keys.SeekLT(vs[at+1].key)
			case 5, 6, 7, 8:
				if at < 0 || at >= len(vs) {
					continue
				}
				ok, at = keys.Prev(), at-1
			default:
				if at < 0 || at >= len(vs) {
					continue
				}
				ok, at = keys.Next(), at+1
			}
			require.NoError(t, keys.Error())
			require.Equal(t, at >= 0 && at < len(vs), ok)
			if !ok {
				continue
			}
			requireVersion(t, vs[at], keys)
		}
	}
}

// requireVersion holds an iterator for keys against a version.
func requireVersion(t *testing.T, want version, it *Iter) {
	t.Helper()
	require.Equal(t, string(want.key.User), string(it.Key().User))
	require.Equal(t, want.key.Trailer, it.Key().Trailer)
	require.Len(t, it.Value(), len(want.value))
	if want.key.Kind() == base.KindSetTTL {
		require.Equal(t, want.value[:base.ExpirySize], it.Value()[:base.ExpirySize])
	}
}

// Blocks are copied as they are if their values are short, or they are malformed, and with holes otherwise.
func TestCopyKeys(t *testing.T) {
	block := func(values ...string) []byte { return newBlockOf(t, values) }
	long := string(bytes.Repeat([]byte{'v'}, 1000))
	buffer := bytes.Repeat([]byte{'-'}, 10_000)
	short := block("short", long)
	require.Equal(t, short, copyKeys(bytes.Clone(buffer), short), "the first is taken for all")
	data := block(long, "short", long)
	got := copyKeys(bytes.Clone(buffer), data)
	require.Len(t, got, len(data))
	require.Equal(t, 2000, bytes.Count(data, []byte("v")))
	require.Zero(t, bytes.Count(got, []byte("v")), "long values stay where they are")
	require.Equal(t, bytes.ReplaceAll(data, []byte("v"), []byte("-")), got, "and all else is copied")

	// An entry that leads out of the block, after a good one.
	var first entry
	require.True(t, decodeEntry(data, 0, &first))
	at := first.next()
	torn := bytes.Clone(data)
	copy(torn[at:], bytes.Repeat([]byte{0xff}, 10))
	got = copyKeys(bytes.Clone(buffer), torn)
	require.Equal(t, torn[at:], got[at:], "what cannot be understood is copied")
	require.Zero(t, bytes.Count(got[:at], []byte("v")))
	require.Len(t, copyKeys(nil, data), len(data))
}

// newBlockOf returns a block of values, of keys that are of no account.
func newBlockOf(t *testing.T, values []string) []byte {
	var vs []version
	for i, v := range values {
		vs = append(vs, version{base.MakeKey(fmt.Appendf(nil, "%03d", i), 1, base.KindSet), []byte(v)})
	}
	data, _ := writeFile(t, &WriterOptions{BlockSize: 1 << 20, Compression: NoCompression}, vs)
	r := openBytes(t, data, nil)
	it := r.NewIter(IterOptions{})
	require.True(t, it.First())
	require.Equal(t, 1, r.dataCount)
	return bytes.Clone(it.data)
}
