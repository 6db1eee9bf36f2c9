package quotient_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/internal/envelope"
	"github.com/siftkv/siftkv/filterpolicy/internal/filtertest"
	"github.com/siftkv/siftkv/filterpolicy/quotient"
	"github.com/siftkv/siftkv/internal/base"
)

// samples are sets that use every part of the format.
func samples(tb testing.TB) map[string]*quotient.Set {
	tb.Helper()
	empty, plain, grown := newSet(tb, 1, 0.01, 0), newSet(tb, 60, 0.001, 0), newSet(tb, 20, 0.05, 3)
	fill(tb, plain, 0, 60)
	fill(tb, grown, 0, 100)
	fill(tb, grown, 90, 100)
	return map[string]*quotient.Set{"empty": empty, "plain": plain, "grown": grown}
}

func encode(tb testing.TB, s *quotient.Set) []byte {
	tb.Helper()
	data, err := s.MarshalBinary()
	require.NoError(tb, err)
	return data
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
		appended, err := s.AppendBinary([]byte("before"))
		require.NoError(t, err)
		require.Equal(t, "before"+string(data), string(appended))
		var stream bytes.Buffer
		n, err := s.WriteTo(&stream)
		require.NoError(t, err)
		require.Equal(t, int64(len(data)), n)
		require.Equal(t, data, stream.Bytes())
		stream.WriteString("what follows")

		var a, b quotient.Set
		given := slices.Clone(data)
		require.NoError(t, a.UnmarshalBinary(given))
		clear(given)
		n, err = b.ReadFrom(iotest.HalfReader(&stream))
		require.NoError(t, err)
		require.Equal(t, int64(len(data)), n)
		require.Equal(t, "what follows", stream.String())
		for _, got := range []*quotient.Set{&a, &b} {
			require.Equal(t, data, encode(t, got), name)
			require.Equal(t, maps.Collect(s.All()), maps.Collect(got.All()))
			require.Equal(t, s.Len(), got.Len())
			require.Equal(t, s.Cap(), got.Cap())
		}
	}
}

func TestZeroSetIsNotWritten(t *testing.T) {
	var s quotient.Set
	_, err := s.MarshalBinary()
	require.ErrorContains(t, err, "make it with New")
	n, err := s.WriteTo(io.Discard)
	require.Error(t, err)
	require.Zero(t, n)
}

// Each truncation, extension and flipped bit is refused, and leaves the set as it was.
func TestSetDamage(t *testing.T) {
	for _, s := range samples(t) {
		data := encode(t, s)
		refused := func(bad []byte) {
			t.Helper()
			err := s.UnmarshalBinary(bad)
			if !errors.Is(err, envelope.ErrCorrupt) || !errors.Is(err, base.ErrCorruption) {
				require.Fail(t, "accepted", "%x: %v", bad, err)
			}
		}
		for size := range data {
			refused(data[:size])
			_, err := s.ReadFrom(bytes.NewReader(data[:size]))
			require.ErrorIs(t, err, envelope.ErrCorrupt)
		}
		refused(append(slices.Clone(data), 0))
		for bit := range 8 * len(data) {
			bad := slices.Clone(data)
			bad[bit/8] ^= 1 << (bit % 8)
			refused(bad)
		}
		_, err := s.ReadFrom(iotest.ErrReader(io.ErrClosedPipe))
		require.ErrorIs(t, err, io.ErrClosedPipe)
		require.Equal(t, data, encode(t, s))
	}
}

// reseal makes length and checksum of an envelope right, as an adversary would.
func reseal(data []byte) []byte {
	if len(data) < envelope.Overhead {
		return data
	}
	body := slices.Clone(data[:len(data)-4])
	binary.LittleEndian.PutUint64(body[8:], uint64(len(body)-16))
	return binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

// forge replaces a byte of the payload.
func forge(data []byte, at int, to byte) []byte {
	forged := slices.Clone(data)
	forged[16+at] = to
	return reseal(forged)
}

// What no set writes is refused though the checksum is right.
func TestSetForgery(t *testing.T) {
	data := encode(t, samples(t)["grown"])
	const blocks = 32
	further := len(data) - 20 - 16*int(data[32]) // of the payload, behind the blocks
	for _, c := range []struct {
		at   int
		to   byte
		want string
	}{
		{0, 0, "parameters"}, {7, 0xff, "parameters"}, {6, 1, "do not hold"},
		{8, 1, "not those of"}, {16, 9, "do not hold"}, {23, 1, "counts"},
		{24, 0, "parameters"}, {24, 57, "parameters"}, {24, 7, "do not hold"},
		{25, 0, "parameters"}, {25, 57, "parameters"}, {26, 1, "parameters"},
		{blocks, 0xff, "not those of"},
		{further + 8, 0, "or none"}, {further + 15, 0xff, "more than can be"},
		{further + 7, 0x10, "not there"}, {further + 16, 0xff, "not there"},
	} {
		err := new(quotient.Set).UnmarshalBinary(forge(data, c.at, c.to))
		require.ErrorIs(t, err, envelope.ErrCorrupt, "%+v", c)
		require.ErrorContains(t, err, c.want, "%+v", c)
	}
}

// FuzzSetDecode gives the decoder any bytes, as they come and with their checksum made
// right; a set that it accepts is written the same and works.
func FuzzSetDecode(f *testing.F) {
	f.Add([]byte{})
	for _, s := range samples(f) {
		data := encode(f, s)
		f.Add(data)
		f.Add(data[:len(data)/2])
		f.Add(forge(data, 0, 0xff))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, reseal(data)} {
			var s, streamed quotient.Set
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
func use(t *testing.T, s *quotient.Set) {
	t.Helper()
	for i := range uint64(50) {
		h := filtertest.Good(1).At(i)
		if s.AddHash(h) == nil {
			require.True(t, s.ContainsHash(h))
		}
		s.RemoveHash(filtertest.Good(2).At(i))
	}
	_ = s.Resize(100)
	_ = s.Merge(s)
	for v, n := range s.All() {
		require.Positive(t, n, v)
	}
	rate := s.FalsePositiveRate()
	require.True(t, rate >= 0 && rate <= 1, rate)
	encode(t, s)
	s.Reset()
	require.Zero(t, s.Len())
}
