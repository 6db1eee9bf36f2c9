package exactranges

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/hostile"
)

// encoded returns the filter of some keys.
func encoded(tb testing.TB, keys ...string) []byte {
	tb.Helper()
	b := Policy{}.NewRangeBuilder()
	for _, k := range keys {
		b.AddKey([]byte(k))
	}
	data, ok := b.Finish(nil)
	require.True(tb, ok)
	return data
}

func TestAnswersAreExact(t *testing.T) {
	f, err := Policy{}.DecodeRange(encoded(t, "", "b", "b", "bb", "d"))
	require.NoError(t, err)
	for _, c := range []struct {
		lo, hi []byte
		want   bool
	}{
		{nil, nil, true},
		{nil, []byte{}, false},
		{nil, []byte("\x00"), true},
		{[]byte("\x00"), []byte("b"), false},
		{[]byte("b"), []byte("b\x00"), true},
		{[]byte("c"), []byte("d"), false},
		{[]byte("d"), nil, true},
		{[]byte("d\x00"), nil, false},
		{[]byte("d"), []byte("b"), false},
	} {
		require.Equal(t, c.want, f.MayContainRange(c.lo, c.hi), "[%q, %q)", c.lo, c.hi)
	}
}

func TestKeysOutOfOrderHaveNoFilter(t *testing.T) {
	b := Policy{}.NewRangeBuilder()
	b.AddKey([]byte("b"))
	b.AddKey([]byte("a"))
	data, ok := b.Finish([]byte("before"))
	require.False(t, ok)
	require.Equal(t, "before", string(data))
	data, ok = b.Finish(nil)
	require.True(t, ok, "it is empty again")
	require.Equal(t, encoded(t), data)
}

func TestHostileFilters(t *testing.T) {
	bound := hostile.Bound{PerByte: 250, Fixed: 8 << 10} // a slice for each key, in a list that grows
	whole := encoded(t, "a", "bcd", "e")
	for _, data := range [][]byte{nil, whole, bytes.Repeat([]byte{0xff}, 1000), make([]byte, 1000),
		append(append([]byte(magic), make([]byte, 10_000)...), magic...)} {
		for n := range min(len(data), 100) {
			changed := bytes.Clone(data)
			changed[n] ^= 0x80
			for _, b := range [][]byte{data[:n], changed} {
				bound.Require(t, len(b), func() {
					_, _ = Policy{}.DecodeRange(b)
					_, _ = filterpolicy.DecodeRangeWith(Policy{}, Name, b)
				})
			}
		}
	}
	_, err := Policy{}.DecodeRange(whole[:len(whole)-1])
	require.ErrorIs(t, err, filterpolicy.ErrCorrupt)
}

// FuzzHostileFilter decodes any bytes, and asks what it gets.
func FuzzHostileFilter(f *testing.F) {
	f.Add(encoded(f, "a", "bcd", "e"), []byte("b"), []byte("c"))
	f.Fuzz(func(_ *testing.T, data, lo, hi []byte) {
		if filter, err := (Policy{}).DecodeRange(data); err == nil {
			filter.MayContainRange(lo, hi)
		}
	})
}
