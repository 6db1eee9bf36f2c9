package compression

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/siftkv/siftkv/internal/hostile"
	"github.com/stretchr/testify/require"
)

func TestWhatIsCompressedComesBack(t *testing.T) {
	var buf []byte
	for _, kind := range []Kind{None, Snappy, Zstd} {
		for _, text := range []string{"", "x", strings.Repeat("sixteen letters ", 100), strings.Repeat("\x00", 3<<20)} {
			stored, got, err := Compress(&buf, []byte(text), kind)
			require.NoError(t, err)
			require.Contains(t, []Kind{None, Snappy, kind}, got)
			require.False(t, got != None && Expands(len(text), len(stored)), "no reader would take it")
			size, err := DecodedSize(stored, got)
			require.NoError(t, err)
			require.Contains(t, []int{len(text), -1}, size)
			decoded, err := Decompress(nil, stored, got)
			require.NoError(t, err)
			require.True(t, text == string(decoded))
		}
	}
	_, _, err := Compress(&buf, []byte("x"), Kind(9))
	require.NoError(t, err, "an unknown kind stores what it is given")
	_, err = Decompress(nil, []byte("x"), Kind(9))
	require.ErrorContains(t, err, "unknown compression 9")
}

func TestKindsHaveNames(t *testing.T) {
	for kind := range Kind(len(names)) {
		parsed, err := Parse(kind.String())
		require.NoError(t, err)
		require.Equal(t, kind, parsed)
		require.True(t, kind.Valid())
	}
	_, err := Parse("lz4")
	require.ErrorContains(t, err, "want none, snappy or zstd")
	require.False(t, Kind(4).Valid())
	require.Equal(t, "compression(4)", Kind(4).String())
}

// decodeBound is what stored bytes may take: zstd as earlier writers stored it expands most.
var decodeBound = hostile.Bound{PerByte: 2 * MaxZstdExpansion, Fixed: 4 << 20}

func requireBounded(tb testing.TB, stored []byte) {
	tb.Helper()
	for _, kind := range []Kind{None, Snappy, Zstd} {
		decodeBound.Require(tb, len(stored), func() { _, _ = Decompress(nil, stored, kind) })
	}
}

// lies are zstd frames and snappy blocks whose sizes are not what they say.
func lies(tb testing.TB) [][]byte {
	enc, err := zstd.NewWriter(nil, zstd.WithSingleSegment(true))
	require.NoError(tb, err)
	whole := enc.EncodeAll(make([]byte, 1<<20), nil)
	var all [][]byte
	for _, n := range []uint32{300, 1<<20 + 1, 1 << 30, 1<<32 - 1} {
		b := slices.Clone(whole)
		binary.LittleEndian.PutUint32(b[5:], n) // after magic and descriptor
		all = append(all, b)
	}
	return append(all, append(slices.Clone(whole), whole...), whole[:len(whole)/2],
		append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0xa0}, bytes.Repeat([]byte{0x02, 0x00, 0x10, 0}, 400)...),
		[]byte{0xff, 0xff, 0xff, 0xff, 3, 0, 0}, []byte{0x80, 0x80, 0x40, 0, 'x', 0x15, 0xff, 0xff, 0xff})
}

func TestHostileBytesDecodeInProportion(t *testing.T) {
	for _, b := range lies(t) {
		_, err := Decompress(nil, b, Zstd)
		require.Error(t, err)
		requireBounded(t, b)
	}
	for mutant := range hostile.Mutants(lies(t)[0], 200) {
		requireBounded(t, mutant)
	}
}

func FuzzHostileBytes(f *testing.F) {
	for _, b := range lies(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { requireBounded(t, b) })
}
