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

// Cells that no builder writes are refused, though the checksum is right.
func TestForgedCellsAreRefused(t *testing.T) {
	var b Builder
	for i := range 150 {
		b.AddKey(fmt.Appendf(nil, "%07d", i*i))
	}
	data, ok := b.Finish(nil)
	require.True(t, ok)
	cells := data[:len(data)-frame.FooterLen]
	const marks, groups = 0, 3 * wordLen
	sound := frame.Description{Keys: 150, Units: 3}
	change := func(at int, to func(x uint64) uint64) func(cells []byte, d *frame.Description) {
		return func(cells []byte, _ *frame.Description) {
			binary.LittleEndian.PutUint64(cells[at:], to(binary.LittleEndian.Uint64(cells[at:])))
		}
	}
	for name, forge := range map[string]func(cells []byte, d *frame.Description){
		"marks that fall":          change(marks+wordLen, func(uint64) uint64 { return 0 }),
		"a gap before all streams": change(groups, func(x uint64) uint64 { return x + 1 }),
		"streams that fall":        change(groups+wordLen, func(x uint64) uint64 { return x &^ (1<<32 - 1) }),
		"streams behind their end": change(groups+2*wordLen, func(x uint64) uint64 { return x | 1<<31 }),
		"a remainder of 13 bits":   change(groups, func(x uint64) uint64 { return x | 13<<48 }),
		"keys of a group less":     func(_ []byte, d *frame.Description) { d.Keys = 128 },
		"keys of a group more":     func(_ []byte, d *frame.Description) { d.Keys = 193 },
		"17 bits beyond the cut":   func(_ []byte, d *frame.Description) { d.Params = maxExtra + 1 },
		"a seed":                   func(_ []byte, d *frame.Description) { d.Seed = 1 },
	} {
		forged, d := append([]byte(nil), cells...), sound
		_, err := Decode(d.Seal(forged, 0, frame.CutKeys))
		require.NoError(t, err)
		forge(forged, &d)
		_, err = Decode(d.Seal(forged, 0, frame.CutKeys))
		require.ErrorIs(t, err, frame.ErrCorrupt, name)
	}
}
