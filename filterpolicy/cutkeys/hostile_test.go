package cutkeys

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
)

// Lengths that are far too long for the tails are read as any others, also where an int has 32 bits
// and their sum does not fit.
func TestAbsurdLengthsAreSafe(t *testing.T) {
	var b Builder
	for i := range 1000 {
		b.AddKey(fmt.Appendf(nil, "%07d", i*i))
	}
	data, ok := b.Finish(nil)
	require.True(t, ok)
	sound, err := Decode(data)
	require.NoError(t, err)
	cells := data[:len(data)-frame.FooterLen]
	groups := len(sound.groups)
	d := frame.Description{Keys: 1000, Units: uint64(sound.len()), Params: maxExtra}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		forged := append([]byte(nil), cells...)
		for at := groups; at < 2*groups; at += wordLen {
			g := group(binary.LittleEndian.Uint64(forged[at:]))
			g = newGroup(g.begin(), 0, 0, g.lengths())
			binary.LittleEndian.PutUint64(forged[at:], uint64(g))
			lengths := forged[2*groups+int(g.begin()):][:g.lengths()]
			clear(lengths)
			for i := escapeZeros / 8; i+escapeBits/8 <= len(lengths); i += (escapeZeros + escapeBits) / 8 {
				length := 2 * r.Uint32N(32)
				if r.IntN(2) == 0 {
					length = 1 << 31
				}
				binary.LittleEndian.PutUint32(lengths[i:], length)
			}
		}
		f, err := Decode(d.Seal(forged, 0, frame.CutKeys))
		require.NoError(t, err)
		for i := range 1000 {
			key := fmt.Appendf(nil, "%07d", i*1009)
			require.NotPanics(t, func() { f.MayContainRange(key, append(key, 0)) })
		}
	}
}
