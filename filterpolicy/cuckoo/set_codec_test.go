package cuckoo_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/cuckoo"
	"github.com/siftkv/siftkv/filterpolicy/internal/envelope"
	"github.com/siftkv/siftkv/filterpolicy/internal/filtertest"
	"github.com/siftkv/siftkv/internal/base"
)

// Lengths of the parts of an encoded set, as they are described where it is written.
const (
	envelopeLen = 16
	headLen     = 8
	tableLen    = 48
	asideLen    = 16
	guardLen    = 12
)

// samples are sets that use every part of the format.
func samples(tb testing.TB) map[string]*cuckoo.Set {
	tb.Helper()
	sample := func(n, keys uint64, o cuckoo.Options) *cuckoo.Set {
		s := newSet(tb, int(n), 0, o)
		for i := range keys {
			_ = s.AddHash(filtertest.Good(1).At(i % max(1, keys*2/3)))
		}
		return s
	}
	return map[string]*cuckoo.Set{
		"empty":   sample(1, 0, cuckoo.Options{Bits: 12}),
		"one":     sample(1, 1, cuckoo.Options{Bits: 12}),
		"plain":   sample(20, 20, cuckoo.Options{Bits: 12}),
		"victim":  sample(3, 200, cuckoo.Options{Bits: 9, Slots: 2}),
		"chain":   sample(4, 60, cuckoo.Options{Bits: 5, Slots: 2, Grow: 2}),
		"guarded": sample(4, 10, cuckoo.Options{Bits: 31, Slots: 8, Guard: true}),
		"guard":   sample(1, 0, cuckoo.Options{Bits: 4, Guard: true}),
	}
}

func encode(tb testing.TB, s *cuckoo.Set) []byte {
	tb.Helper()
	data, err := s.MarshalBinary()
	require.NoError(tb, err)
	return data
}

// cellsLen returns the bytes of a table's cells.
func cellsLen(buckets, slots, bits int) int { return (buckets*slots*bits+7)/8 + 7 }

func TestSamplesUseTheWholeFormat(t *testing.T) {
	all, le := samples(t), binary.LittleEndian
	const first = envelopeLen + headLen
	require.NotZero(t, le.Uint32(encode(t, all["victim"])[first+32:]))
	require.Greater(t, all["chain"].Tables(), 2)
	require.NotZero(t, le.Uint64(encode(t, all["chain"])[first+40:]))
	require.Equal(t, byte(1), encode(t, all["guarded"])[envelopeLen+3])
}

func TestSetGolden(t *testing.T) {
	for name, s := range samples(t) {
		data := encode(t, s)
		text := fmt.Sprintf("%s, %d keys, %d bytes\n%s", name, s.Len(), len(data), hex.Dump(data))
		filtertest.File(t, filepath.Join("testdata", "set-"+name+".golden"), text)
	}
}

func TestSetRoundTrips(t *testing.T) {
	for name, s := range samples(t) {
		data := encode(t, s)
		var stream bytes.Buffer
		n, err := s.WriteTo(&stream)
		require.NoError(t, err)
		require.Equal(t, int64(len(data)), n)
		require.Equal(t, data, stream.Bytes())
		stream.WriteString("what follows")

		var a, b cuckoo.Set
		given := slices.Clone(data)
		require.NoError(t, a.UnmarshalBinary(given))
		clear(given)
		n, err = b.ReadFrom(iotest.HalfReader(&stream))
		require.NoError(t, err)
		require.Equal(t, int64(len(data)), n)
		require.Equal(t, "what follows", stream.String())
		for _, got := range []*cuckoo.Set{&a, &b} {
			require.Equal(t, data, encode(t, got), name)
			require.Equal(t, s.Len(), got.Len())
			require.Equal(t, s.Cap(), got.Cap())
			require.Equal(t, s.FalsePositiveRate(), got.FalsePositiveRate())
			for i := range uint64(300) {
				h := filtertest.Good(1).At(i)
				require.Equal(t, s.CountHash(h), got.CountHash(h))
			}
		}
	}
}

func TestSetDamage(t *testing.T) {
	all := samples(t)
	s := all["one"]
	before := encode(t, s)
	refused := func(data []byte) {
		t.Helper()
		err := s.UnmarshalBinary(data)
		if !errors.Is(err, envelope.ErrCorrupt) || !errors.Is(err, base.ErrCorruption) {
			require.Fail(t, "accepted", "%x: %v", data, err)
		}
	}
	for _, name := range []string{"empty", "chain", "guarded"} {
		data := encode(t, all[name])
		for size := range data {
			refused(data[:size])
			_, err := new(cuckoo.Set).ReadFrom(bytes.NewReader(data[:size]))
			require.ErrorIs(t, err, envelope.ErrCorrupt)
		}
		for bit := range 8 * len(data) {
			bad := slices.Clone(data)
			bad[bit/8] ^= 1 << (bit % 8)
			refused(bad)
		}
	}
	require.Equal(t, before, encode(t, s), "a refused decode must leave no trace")
	_, err := new(cuckoo.Set).ReadFrom(iotest.ErrReader(io.ErrClosedPipe))
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

// resealed makes length and checksum of an envelope right, as an adversary would.
func resealed(data []byte) []byte {
	if len(data) < envelope.Overhead {
		return data
	}
	body := slices.Clone(data[:len(data)-4])
	binary.LittleEndian.PutUint64(body[8:], uint64(len(body)-16))
	return binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

// Descriptions that do not fit the tables are refused though their checksum is right.
func TestSetForgery(t *testing.T) {
	all := samples(t)
	const head = envelopeLen
	const first = head + headLen // the first table
	le := binary.LittleEndian
	forge := func(name, what string, change func(data []byte) []byte) {
		t.Helper()
		data := encode(t, all[name])
		forged := resealed(change(slices.Clone(data)))
		require.NotEqual(t, data, forged)
		err := new(cuckoo.Set).UnmarshalBinary(forged)
		require.ErrorIs(t, err, envelope.ErrCorrupt)
		require.ErrorContains(t, err, what)
	}
	set := func(at int, v byte) func([]byte) []byte {
		return func(d []byte) []byte { d[at] = v; return d }
	}
	put := func(at int, v uint64) func([]byte) []byte {
		return func(d []byte) []byte { le.PutUint64(d[at:], v); return d }
	}
	forge("plain", "version is 2", set(5, 2))
	for at, v := range []byte{3, 5, 9, 2, 0} {
		forge("plain", "no cuckoo set has parameters", set(head+at, v))
	}
	forge("plain", "no cuckoo set has parameters", set(head+7, 1))
	forge("plain", "cut short", set(head+4, 2))
	forge("chain", "bytes follow the set", set(head+4, 1))
	for _, buckets := range []uint64{0, 1, 5, 1<<63 + 1} {
		forge("plain", "no table has", put(first, buckets))
	}
	for _, buckets := range []uint64{1 << 20, 1 << 40, 1 << 58, 1 << 61, 1 << 63, math.MaxUint64 - 1} {
		forge("plain", "cut short", put(first, buckets))
	}
	forge("plain", "classes, the set says", put(first+8, 21))
	forge("plain", "classes, the set says", put(first+16, 1))
	forge("plain", "classes, the set says", put(first+16, 21))
	forge("plain", "is no victim", put(first+24, 1))
	forge("victim", "is no victim", put(first+24, 1000))
	forge("victim", "is no victim", set(first+33, 2))
	forge("plain", "no table has", set(first+36, 11))
	forge("plain", "no table has", set(first+36, 33))
	forge("plain", "cut short", put(first+40, math.MaxUint64))
	forge("plain", "behind the last slot", func(d []byte) []byte { d[len(d)-5] = 1; return d })
	forge("plain", "1 bytes follow the set", func(d []byte) []byte { return append(d, 0) })

	data := encode(t, all["chain"])
	extra := first + tableLen + cellsLen(int(le.Uint64(data[first:])), 2, 5)
	forge("chain", "out of bounds or order", put(extra, 1<<40))
	forge("chain", "out of bounds or order", set(extra+8, 0))
	forge("chain", "out of bounds or order", set(extra+8, 32))
	forge("chain", "more copies", set(extra+12, 0))
	second := extra + asideLen*int(le.Uint64(data[first+40:]))
	require.Equal(t, uint32(6), le.Uint32(data[second+36:]))
	forge("chain", "two tables have fingerprints of", func(d []byte) []byte { return twice(d, first, second) })

	count := first + tableLen + cellsLen(2, 8, 31)
	require.Equal(t, uint64(6), le.Uint64(encode(t, all["guarded"])[count:]))
	forge("guarded", "cut short", put(count, 1<<60))
	forge("guarded", "out of order or there", set(count+8+8, 0))
	forge("guarded", "out of order or there", put(count+8+guardLen, 1))
	forge("guarded", "the guard knows", set(count+8+8, 3))
	forge("guard", "cut short", func(d []byte) []byte { return d[:len(d)-3] })
}

// twice returns data with its first table, from first to second, in it twice.
func twice(data []byte, first, second int) []byte {
	data[envelopeLen+4]++
	return slices.Concat(data[:second], data[first:])
}

// FuzzSetDecode gives the decoder any bytes, as they come and with their checksum made right;
// a set that it accepts must work.
func FuzzSetDecode(f *testing.F) {
	for _, s := range samples(f) {
		f.Add(encode(f, s))
	}
	f.Add([]byte(strings.Repeat("x", 100)))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, resealed(data)} {
			var s, streamed cuckoo.Set
			err := s.UnmarshalBinary(data)
			_, streamErr := streamed.ReadFrom(bytes.NewReader(data))
			if err != nil {
				require.ErrorIs(t, err, envelope.ErrCorrupt)
				continue
			}
			require.NoError(t, streamErr)
			require.Equal(t, data, encode(t, &s), "one set has one encoding")
			require.Equal(t, data, encode(t, &streamed))
			use(t, &s)
		}
	})
}

// use does everything to a set of which nothing is known but that it was accepted.
func use(t *testing.T, s *cuckoo.Set) {
	t.Helper()
	for i := range uint64(60) {
		h := filtertest.Good(1).At(i)
		if s.AddHash(h) == nil {
			require.True(t, s.ContainsHash(h))
			require.Positive(t, s.CountHash(h))
		}
		s.RemoveHash(filtertest.Good(2).At(i))
	}
	rate := s.FalsePositiveRate()
	require.True(t, rate >= 0 && rate <= 1, rate)
	require.GreaterOrEqual(t, s.Len(), 0)
	encode(t, s)
	s.Reset()
	require.Zero(t, s.Len())
	require.Zero(t, s.FalsePositiveRate())
}
