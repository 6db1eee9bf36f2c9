package cutkeys

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// twins returns keys in order, each pair of which differs in its last byte alone.
func twins(pairs, size int) (list [][]byte) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range pairs {
		key := []byte{byte(i >> 8), byte(i)}
		for len(key) < size-1 {
			key = append(key, byte(r.Uint32()))
		}
		list = append(list, append(slices.Clone(key), 0), append(key, 1))
	}
	return list
}

func finish(list [][]byte) (b *Builder, held int, data []byte, ok bool) {
	b = Policy{6}.NewBuilder()
	for _, key := range list {
		b.AddKey(key)
		held = max(held, cap(b.records))
	}
	data, ok = b.Finish([]byte("x"))
	return b, held, data, ok
}

// Long keys that are told apart by their ends would make filters half as large as they are: there is
// none then, and memory stays small. A few such keys, and many that are alike at first, have one.
func TestKeysThatPartLateAreDeclined(t *testing.T) {
	list := twins(2000, 1000)
	b, held, data, ok := finish(list)
	require.False(t, ok)
	require.Equal(t, "x", string(data))
	require.Less(t, held, 600_000, "of %d bytes of keys", 4000*1000)
	b.AddKey([]byte("next"))
	_, ok = b.Finish(nil)
	require.True(t, ok, "the builder is ready for the next file")

	_, _, data, ok = finish(twins(1, 64<<10))
	require.True(t, ok)
	require.Less(t, len(data), 130<<10)
	_, _, data, ok = finish(twins(2000, 40))
	require.True(t, ok, "pairs of usual keys are not too much")
	require.Less(t, len(data), 4000*40)
	alike := [][]byte{{0}}
	for _, key := range twins(500, 6) {
		alike = append(alike, append(slices.Repeat([]byte{'k'}, 60_000), key...))
	}
	_, _, _, ok = finish(alike)
	require.True(t, ok)
}

// Most lengths of rows with many columns are far above those where a new row begins: each takes the bits of its
// distance from what is usual, not from the least.
func TestLengthsOfRowsAreShort(t *testing.T) {
	var list [][]byte
	for row := range 200 {
		name := fmt.Appendf(nil, "%08x", row*0x9e3779)
		for column := range 50 {
			list = append(list, fmt.Appendf(slices.Repeat(name, 4), "|%02d", column))
		}
	}
	_, _, data, ok := finish(list)
	require.True(t, ok)
	f, err := Decode(data[1:])
	require.NoError(t, err)
	lengths := uint64(0)
	for i := range f.len() {
		lengths += f.group(i).lengths()
	}
	require.Less(t, 8*float64(lengths)/float64(len(list)), 7.0, "bits per length")
}
