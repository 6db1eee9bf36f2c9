package conformance

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
)

// Places in a stored set.
const (
	VersionAt = 5
	lengthAt  = 8
	PayloadAt = 16

	checksumLen = 4
)

// envelope appends the envelope of a payload, which may come in parts, as a forger would write it.
func envelope(dst []byte, family frame.Family, version byte, payload ...[]byte) []byte {
	data, err := frame.Envelope{Family: family, Version: version}.Append(dst, append([][]byte{}, payload...))
	if err != nil {
		panic(err)
	}
	return data
}

// ResealSet makes length and checksum right, as an adversary would.
func ResealSet(data []byte) []byte {
	if len(data) < frame.Overhead {
		return data
	}
	body := slices.Clone(data[:len(data)-checksumLen])
	binary.LittleEndian.PutUint64(body[lengthAt:], uint64(len(body)-PayloadAt))
	return binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

// A SetForgery is a byte of a payload that no set writes there, and what the error
// about it says.
type SetForgery struct {
	At   int
	To   byte
	Want string
}

// Forge makes the forgery of a stored set, with its checksum right.
func (f SetForgery) Forge(data []byte) []byte {
	forged := slices.Clone(data)
	forged[PayloadAt+f.At] = f.To
	return ResealSet(forged)
}

// Forgeries checks that each forgery of a stored set is refused, and so is a
// later version of it.
func Forgeries[P Set](t *testing.T, data []byte, zero func() P, all ...SetForgery) {
	t.Helper()
	for _, f := range all {
		err := zero().UnmarshalBinary(f.Forge(data))
		require.ErrorIs(t, err, frame.ErrCorrupt, "%+v", f)
		require.ErrorContains(t, err, f.Want, "%+v", f)
	}
	later := slices.Clone(data)
	later[VersionAt]++
	err := zero().UnmarshalBinary(ResealSet(later))
	require.ErrorIs(t, err, frame.ErrCorrupt)
	require.ErrorContains(t, err, "version is 2; this program reads version 1")
}

// fuzzSet gives a set any bytes, as they come and with their checksum made right.
// Those that it refuses match ErrCorrupt or one of also. What it takes it must be
// able to write again, the same; use then works with the set.
func fuzzSet[P Set](f *testing.F, zero func() P, use func(tb testing.TB, s P), seeds [][]byte, also ...error) {
	f.Helper()
	f.Add([]byte{})
	for _, seed := range seeds {
		f.Add(seed)
		f.Add(seed[:len(seed)/2])
		f.Add(SetForgery{At: 0, To: 0xff}.Forge(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, ResealSet(data)} {
			readBound.Require(t, len(data), func() { _ = zero().UnmarshalBinary(data) })
			s := zero()
			if err := s.UnmarshalBinary(data); err != nil {
				is := func(target error) bool { return errors.Is(err, target) }
				require.True(t, is(frame.ErrCorrupt) || slices.ContainsFunc(also, is), "%v", err)
				continue
			}
			require.Equal(t, data, Bytes(t, s), "one set has one encoding")
			streamed := zero()
			n, err := streamed.ReadFrom(bytes.NewReader(data))
			require.NoError(t, err)
			require.Equal(t, int64(len(data)), n)
			require.Equal(t, data, Bytes(t, streamed))
			use(t, s)
		}
	})
}

// Use does to a set of which nothing is known, but that its bytes were accepted,
// what can be done to any, and checks that it still works.
func Use(tb testing.TB, s Set) {
	tb.Helper()
	require.GreaterOrEqual(tb, s.Len(), 0)
	for i := range uint64(50) {
		s.ContainsHash(Hash(Absent, i))
		if Add(s, Hash(1, i)) == nil {
			require.True(tb, s.ContainsHash(Hash(1, i)))
		}
		if r, ok := s.(Remover); ok {
			require.Equal(tb, s.ContainsHash(Hash(1, i)), r.CountHash(Hash(1, i)) > 0)
			r.RemoveHash(Hash(2, i))
		}
	}
	rate := s.FalsePositiveRate()
	require.True(tb, rate >= 0 && rate <= 1, rate)
	Bytes(tb, s)
	s.Reset()
	require.Zero(tb, s.Len())
	require.Zero(tb, Fullness(s)+s.FalsePositiveRate())
}
