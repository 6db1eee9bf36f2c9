package cutkeys

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// alphabetOf returns the alphabet of bytes that come as often as given, as it is on disk.
func alphabetOf(often map[byte]uint64) []byte {
	var c census
	for b, n := range often {
		c.occurs(b)
		c[int(b)+1] += n * countOne
	}
	symbols := c.symbols()
	return appendAlphabet(nil, symbols, c.lengths(symbols))
}

// Codes are in the order of bytes, none begins another, and those that come often are short.
func TestCodesKeepTheOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		often := map[byte]uint64{}
		for range r.IntN(300) {
			often[byte(r.Uint32())] = uint64(1) << r.IntN(1+round%40)
		}
		data := alphabetOf(often)
		var a alphabet
		require.True(t, a.load(data))
		above := uint64(0) // where the code before ends; that of a key's end comes first
		for b := range 256 {
			l := a[b]
			require.LessOrEqual(t, l.len(), uint(maxLetter))
			require.NotZero(t, l.code(), "the end of a key ranks lowest")
			if _, occurs := often[byte(b)]; !occurs {
				require.NotZero(t, l&unknown)
				require.GreaterOrEqual(t, l.code(), above)
				continue
			}
			require.Zero(t, l&unknown)
			require.GreaterOrEqual(t, l.code(), above)
			above = l.code() + 1<<(64-l.len())
			require.NotZero(t, above, "what is above all bytes has a code too")
			if b > 0 && a[b-1]&unknown != 0 {
				require.Equal(t, l, a[b-1]&^unknown, "a byte that does not occur is the next one that does")
			}
		}
	}
	often := map[byte]uint64{'e': 1000}
	for b := byte('a'); b < 'z'; b++ {
		often[b] += 10
	}
	var a alphabet
	require.True(t, a.load(alphabetOf(often)))
	require.LessOrEqual(t, a['e'].len(), uint(2))
	require.GreaterOrEqual(t, a['m'].len(), uint(5))
}

// Only what fills the interval from 0 to 1 is an alphabet.
func TestBadAlphabetsAreRefused(t *testing.T) {
	sound := alphabetOf(map[byte]uint64{'a': 3, 'b': 2, 'c': 1})
	var a alphabet
	require.True(t, a.load(sound))
	for size := range sound {
		require.False(t, a.load(sound[:size]), "%d bytes", size)
	}
	require.False(t, a.load(append(slices.Clone(sound), 0)))
	for at := range bitmapLen {
		bad := slices.Clone(sound)
		bad[at] ^= 8 // a byte more, or fewer, than there are codes
		require.False(t, a.load(bad), "byte %d", at)
	}
	for at := bitmapLen; at < len(sound)-1; at++ {
		bad := slices.Clone(sound)
		bad[at] ^= 1
		require.False(t, a.load(bad), "byte %d", at)
	}
}
