package keys

import (
	"bytes"
	"compress/flate"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
)

func TestValueIsAFunctionOfKeyAndSeed(t *testing.T) {
	a, err := NewValues(100, 1)
	require.NoError(t, err)
	b, err := NewValues(100, 2)
	require.NoError(t, err)
	key := []byte("key")
	value := a.Append([]byte("prefix"), key)
	require.Equal(t, "prefix", string(value[:6]))
	value = value[6:]
	require.Len(t, value, 100)
	require.Equal(t, value, a.Append(nil, key))
	require.NotEqual(t, value, b.Append(nil, key))
	require.NotEqual(t, value, a.Append(nil, []byte("kez")))
	require.True(t, a.HasWord(value, a.Word(key)))
	require.False(t, a.HasWord(value[:99], a.Word(key)))
	require.False(t, a.HasWord(value, b.Word(key)))
}

func TestCheckSeesEveryByte(t *testing.T) {
	for _, size := range []int{16, 17, 24, 99, 100, 101} {
		half, err := NewValues(size, 7)
		require.NoError(t, err)
		for _, v := range []Values{half, half.Random()} {
			value := v.Append(nil, []byte("k"))
			require.Len(t, value, size)
			ok, scratch := v.Check(nil, []byte("k"), value)
			require.True(t, ok)
			for i := range value {
				value[i] ^= 1
				ok, scratch = v.Check(scratch, []byte("k"), value)
				require.False(t, ok, "size %d: byte %d changed", size, i)
				value[i] ^= 1
			}
		}
	}
}

func TestRandomValuesDoNotCompress(t *testing.T) {
	half, err := NewValues(16<<10, 3)
	require.NoError(t, err)
	v := half.Random()
	require.Equal(t, half.Word([]byte("k")), v.Word([]byte("k")))
	value := v.Append([]byte("prefix"), []byte("k"))[6:]
	require.True(t, v.HasWord(value, v.Word([]byte("k"))))
	require.True(t, bytes.HasPrefix(half.Append(nil, []byte("k")), value[:8]), "the same first word")
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	require.NoError(t, err)
	for _, key := range []string{"k", "l"} {
		_, err = w.Write(v.Append(nil, []byte(key)))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.Greater(t, packed.Len(), 2*16<<10, "nothing in one value is in it twice, or in another")
}

func TestValuesAreHalfCompressible(t *testing.T) {
	v, err := NewValues(100, 3)
	require.NoError(t, err)
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestSpeed)
	require.NoError(t, err)
	const n = 2000
	for i := range n {
		_, err := w.Write(v.Append(nil, fmt.Appendf(nil, "%d", i)))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.InDelta(t, 0.5, float64(packed.Len())/(100*n), 0.1)
}

func TestSizeHasBounds(t *testing.T) {
	for _, size := range []int{-1, 0, 15, MaxValueSize + 1} {
		_, err := NewValues(size, 1)
		require.ErrorIs(t, err, bench.ErrUsage)
	}
}

func BenchmarkAppend(b *testing.B) {
	v, _ := NewValues(100, 1)
	key, dst := []byte("0123456789abcdef"), make([]byte, 0, 128)
	for b.Loop() {
		dst = v.Append(dst[:0], key)
	}
}

func BenchmarkHasWord(b *testing.B) {
	v, _ := NewValues(100, 1)
	key := []byte("0123456789abcdef")
	value, word := v.Append(nil, key), v.Word(key)
	for b.Loop() {
		if !v.HasWord(value, word) {
			b.Fatal("wrong")
		}
	}
}
