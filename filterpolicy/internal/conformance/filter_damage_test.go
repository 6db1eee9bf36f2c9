package conformance

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/scale"
)

// Damage checks that Decode refuses each truncation, each extension and each
// flipped bit of filters of a few sizes, and that the unchecked probe survives
// them, says maybe to bytes that are too short to be a filter, and maybe to those
// whose description is off.
func Damage(t *testing.T, spec string) {
	t.Helper()
	v := victimOf(t, spec)
	for _, n := range []int{0, 1, 60} {
		data := Build(t, spec, Good(1), n)
		for size := range data {
			v.refuses(t, data[:size])
			v.refuses(t, data[len(data)-size:])
		}
		v.refuses(t, append(slices.Clone(data), 0))
		for bit := 0; bit < 8*len(data); bit += scale.Stride(1, 1) {
			data[bit/8] ^= 1 << (bit % 8)
			v.refuses(t, data)
			data[bit/8] ^= 1 << (bit % 8)
		}
	}
	for size := range 32 {
		require.True(t, v.probe(make([]byte, size), 1))
	}
	require.True(t, v.probe(make([]byte, 4096), 1))
}

// A victim is a family whose filters are damaged.
type victim struct {
	name  string
	probe func(data []byte, h uint64) bool
}

func victimOf(tb testing.TB, spec string) victim {
	tb.Helper()
	return victim{Policy(tb, spec).Name(), prober(tb, spec)}
}

// refuses checks that data is not a filter, and that probing it all the same does
// no harm.
func (v victim) refuses(t *testing.T, data []byte) {
	t.Helper()
	if _, err := filterpolicy.Decode(v.name, data); !errors.Is(err, filterpolicy.ErrCorrupt) ||
		!errors.Is(err, base.ErrCorruption) {
		require.Fail(t, "taken for a filter", "%s, %d bytes: %v", v.name, len(data), err)
	}
	touch(v.probe, data)
}

// survives checks that Decode either refuses data or makes a filter of them that can be
// asked, and that the unchecked probe survives them.
func (v victim) survives(t *testing.T, data []byte) {
	t.Helper()
	touch(v.probe, data)
	filter, err := filterpolicy.Decode(v.name, data)
	if err != nil {
		require.ErrorIs(t, err, filterpolicy.ErrCorrupt)
		return
	}
	touch(func(_ []byte, h uint64) bool { return filter.MayContainHash(h) }, nil)
}

// touch probes data with hashes of all kinds.
func touch(probe func([]byte, uint64) bool, data []byte) {
	for i := range uint64(4) {
		for _, h := range []uint64{i, ^i, 1 << 63 >> i, Good(1).At(i)} {
			probe(data, h)
		}
	}
}

// Reseal makes the checksum right, as an adversary would.
func Reseal(data []byte) []byte {
	if len(data) < 4 {
		return data
	}
	body := data[:len(data)-4]
	return binary.LittleEndian.AppendUint32(slices.Clone(body), crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

// Forgery checks that descriptions which do not fit the cells are refused though
// their checksum is right.
func Forgery(t *testing.T, spec string) {
	t.Helper()
	v, data := victimOf(t, spec), Build(t, spec, Good(1), 100)
	body, footer := data[:len(data)-32], data[len(data)-32:]
	forge := func(body []byte, change func(footer []byte)) {
		forged := append(slices.Clone(body), footer...)
		change(forged[len(body):])
		if !bytes.Equal(forged, data) {
			v.refuses(t, Reseal(forged))
		}
	}
	put := binary.LittleEndian.PutUint64
	for _, units := range []uint64{0, 1, 1 << 32, 1 << 58, 1 << 61, 1 << 63, ^uint64(0)} {
		forge(body, func(f []byte) { put(f[8:], units) })
		forge(nil, func(f []byte) { put(f[8:], units) })
	}
	forge(body, func(f []byte) { put(f, 0) })
	forge(nil, func(f []byte) { put(f[8:], 0) })
	forge(body[1:], func([]byte) {})
	for at := 20; at < 28; at++ {
		forge(body, func(f []byte) { f[at] ^= 0x80 })
	}
	forge(body, func(f []byte) { f[20] = 0 })
}

// fuzzDecode gives Decode and the unchecked probe any bytes, as they come and with
// their checksum made right.
func fuzzDecode(f *testing.F, specs ...string) {
	for _, spec := range specs {
		for _, n := range []int{0, 1, 50} {
			f.Add(Build(f, spec, Good(1), n))
		}
	}
	f.Add([]byte{})
	v := victimOf(f, specs[0])
	f.Fuzz(func(t *testing.T, data []byte) {
		v.survives(t, data)
		v.survives(t, Reseal(data))
		v.bounded(t, Reseal(data))
	})
}
