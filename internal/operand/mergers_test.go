package operand

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBuiltinMergers(t *testing.T) {
	for _, m := range []Merger{Int64Add{}, Append{}, Append{","}, Append{"\n\x00\""}} {
		require.Equal(t, m, Builtin(m.Name()), m.Name())
	}
	for _, name := range []string{"", "siftkv.append:", `siftkv.append:""`, "siftkv.append:x", "siftkv.appendx",
		"mine"} {
		require.Nil(t, Builtin(name), name)
	}
	number := func(n int64) []byte { return AppendInt64(nil, n) }
	for _, c := range []struct{ a, b, sum int64 }{{1, 2, 3}, {-5, 3, -2}, {1<<63 - 1, 1, -1 << 63}} {
		v, err := Int64Add{}.Merge(nil, number(c.a), number(c.b))
		require.NoError(t, err)
		require.Equal(t, number(c.sum), v, "sums wrap around")
	}
	for _, bad := range [][2][]byte{{number(1), []byte("1")}, {nil, number(1)}} {
		_, err := Int64Add{}.Merge(nil, bad[0], bad[1])
		require.ErrorContains(t, err, "8 bytes")
	}
}
