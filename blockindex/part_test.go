package blockindex

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPart(t *testing.T) {
	var b Builder
	key := func(n uint64) []byte { return binary.BigEndian.AppendUint64([]byte("common/"), n) }
	separators := []uint64{1000, 2000, 2001, 1 << 60}
	for i, s := range separators {
		b.Add(key(s), uint64(i+1))
	}
	x, err := Decode(b.Append(nil))
	require.NoError(t, err)
	for _, c := range []struct {
		key uint64
		i   int
		at  float64 // of 256
	}{
		{500, 0, -1}, {1001, 1, 0}, {1250, 1, 64}, {1500, 1, 128}, {1999, 1, 255}, {2000, 1, 255}, {2001, 2, 255},
		{1 << 58, 3, 64}, {1 << 59, 3, 128}, {1 << 60, 3, 255}, {1<<60 + 1, 4, -1},
	} {
		i := x.Find(key(c.key))
		require.Equal(t, c.i, i, c.key)
		require.InDelta(t, c.at, x.Part(i, key(c.key)), 1, c.key)
	}
}

// Separators that agree in their first bytes do not say where a key between them is.
func TestPartIsNotKnown(t *testing.T) {
	var b Builder
	for i, s := range []string{"a", "equal in eight bytes, 1", "equal in eight bytes, 2", "z"} {
		b.Add([]byte(s), uint64(i+1))
	}
	x, err := Decode(b.Append(nil))
	require.NoError(t, err)
	key := []byte("equal in eight bytes, 1 and more")
	require.Equal(t, 2, x.Find(key))
	require.Equal(t, -1, x.Part(2, key))
}
