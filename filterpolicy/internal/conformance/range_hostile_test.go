package conformance

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/hostile"
	"github.com/siftkv/siftkv/internal/scale"
)

// Decode refuses each truncation, each extension and each flipped bit.
func TestRangeDamage(t *testing.T) {
	eachRangeSpec(t, func(t *testing.T, spec string) {
		name := RangePolicy(t, spec).Name()
		refuses := func(data []byte) {
			_, err := filterpolicy.DecodeRange(name, data)
			if !errors.Is(err, filterpolicy.ErrCorrupt) || !errors.Is(err, base.ErrCorruption) {
				require.Fail(t, "taken for a filter", "%d bytes: %v", len(data), err)
			}
		}
		for _, n := range []int{0, 1, 100} {
			data := BuildRange(t, spec, keyKinds[0].sorted(rand.New(rand.NewPCG(1, 2)), n))
			for size := range data {
				refuses(data[:size])
				refuses(data[len(data)-size:])
			}
			refuses(append(slices.Clone(data), 0))
			for bit := 0; bit < 8*len(data); bit += scale.Stride(1, 1) {
				data[bit/8] ^= 1 << (bit % 8)
				refuses(data)
				data[bit/8] ^= 1 << (bit % 8)
			}
		}
	})
}

// Decode refuses descriptions that do not fit the cells, though their checksum is right.
func TestRangeForgery(t *testing.T) {
	eachRangeSpec(t, func(t *testing.T, spec string) {
		name := RangePolicy(t, spec).Name()
		data := BuildRange(t, spec, keyKinds[0].sorted(rand.New(rand.NewPCG(1, 2)), 100))
		refuses := func(at int, change ...byte) {
			forged := slices.Clone(data)
			copy(forged[at:], change)
			_, err := filterpolicy.DecodeRange(name, Reseal(forged))
			require.ErrorIs(t, err, filterpolicy.ErrCorrupt, "%d from the end: %x", len(data)-at, change)
		}
		footer := len(data) - footerLen
		for _, number := range []uint64{0, 1, 1 << 32, 1 << 58, 1 << 61, 1 << 63, ^uint64(0)} {
			refuses(footer+8, binary.LittleEndian.AppendUint64(nil, number)...)
		}
		refuses(footer, make([]byte, 8)...)
		for at := 16; at < 28; at++ {
			refuses(footer+at, data[footer+at]^0x80)
		}
	})
}

// Bytes that are changed at random make a filter that can be asked, or the error of corruption.
func TestHostileRangeFilters(t *testing.T) {
	eachRangeSpec(t, func(t *testing.T, spec string) {
		r := rand.New(rand.NewPCG(3, 4))
		var sound [][]byte
		for _, kind := range keyKinds {
			for _, n := range []int{0, 1, 40, 300} {
				if kind.name != "of 64 KiB" {
					sound = append(sound, BuildRange(t, spec, kind.sorted(r, n)))
				}
			}
		}
		for range Share(4000) {
			mutant := mutate(r, slices.Clone(sound[r.IntN(len(sound))]))
			askAny(t, spec, mutant)
			askAny(t, spec, Reseal(mutant))
		}
		for _, data := range [][]byte{nil, make([]byte, 32), bytes.Repeat([]byte{0xff}, 1000)} {
			askAny(t, spec, data)
			askAny(t, spec, Reseal(data))
		}
	})
}

// askAny decodes bytes, which takes no memory out of proportion, and asks what comes of them.
func askAny(t *testing.T, spec string, data []byte) {
	t.Helper()
	name := RangePolicy(t, spec).Name()
	hostile.Bound{Fixed: 8 << 10}.Require(t, len(data), func() { _, _ = filterpolicy.DecodeRange(name, data) })
	f, err := filterpolicy.DecodeRange(name, data)
	if err != nil {
		require.ErrorIs(t, err, filterpolicy.ErrCorrupt)
		return
	}
	for _, lo := range hostileBounds {
		for _, hi := range hostileBounds {
			f.MayContainRange(lo, hi)
		}
	}
	f.MayContainRange(nil, nil)
}

var hostileBounds = [][]byte{
	{}, {0}, {0xff}, []byte("a"), []byte("m"), []byte("user000001|1700000000000"), bytes.Repeat([]byte("x"), 71),
	bytes.Repeat([]byte{0}, 300), bytes.Repeat([]byte{0xff}, 300),
}

// Any bytes are decoded and asked, as they come and with their checksum made right.
func FuzzCutkeysDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 100} {
		for _, kind := range keyKinds[:len(keyKinds)-1] {
			f.Add(BuildRange(f, "cut:6", kind.sorted(r, n)))
		}
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		askAny(t, "cut:6", data)
		askAny(t, "cut:6", Reseal(data))
	})
}

// Keys and bounds are cut from any bytes, and answers compared with a sorted list.
func FuzzCutkeysRanges(f *testing.F) {
	f.Add([]byte("a\nb\nab\n\nb\x00\nc"), []byte("a"), []byte("b"), uint8(6))
	f.Add([]byte("\x00\n\x00\x00\n\xff\n\xff\xff\n\xff\x00"), []byte("\xff"), []byte("\xff\x01"), uint8(0))
	f.Fuzz(func(t *testing.T, text, lo, hi []byte, extra uint8) {
		list := bytes.Split(text, []byte("\n"))
		slices.SortFunc(list, bytes.Compare)
		spec := []string{"cut:0", "cut:1", "cut:6", "cut:16"}[extra%4]
		filter := OpenRange(t, spec, BuildRange(t, spec, list))
		mayContain(t, filter, list, lo, hi)
		mayContain(t, filter, list, nil, hi)
		mayContain(t, filter, list, lo, nil)
		neighbours(t, filter, list)
	})
}
