package conformance

import (
	"bytes"
	"encoding"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/golden"
)

// A Codec is a set's ways into bytes and out of them.
type Codec interface {
	encoding.BinaryMarshaler
	encoding.BinaryAppender
	encoding.BinaryUnmarshaler
	io.WriterTo
	io.ReaderFrom
}

// Bytes encodes a set that can be encoded.
func Bytes(tb TB, s Codec) []byte {
	tb.Helper()
	data, err := s.MarshalBinary()
	require.NoError(tb, err)
	return data
}

// RoundTrip checks that a set's bytes are the same by every way out, and that
// every way in makes a set of the same bytes and answers. zero makes a zero set.
func RoundTrip[P Set](t *testing.T, s Set, zero func() P) {
	t.Helper()
	data := Bytes(t, s)
	appended, err := s.AppendBinary([]byte("before"))
	require.NoError(t, err)
	require.Equal(t, "before"+string(data), string(appended))
	var buf bytes.Buffer
	n, err := s.WriteTo(&buf)
	require.NoError(t, err)
	require.Equal(t, int64(len(data)), n)
	require.True(t, bytes.Equal(data, buf.Bytes()))

	given := slices.Clone(data)
	u := zero()
	require.NoError(t, u.UnmarshalBinary(given))
	clear(given)
	same(t, s, u, data)

	buf.WriteString("what follows")
	for _, from := range []io.Reader{&buf, iotest.HalfReader(bytes.NewReader(data))} {
		r := zero()
		n, err = r.ReadFrom(from)
		require.NoError(t, err)
		require.Equal(t, int64(len(data)), n)
		same(t, s, r, data)
	}
	require.Equal(t, "what follows", buf.String(), "reading takes one set and no more")
}

// same checks that a set that was read is the one that was written as data.
func same(t *testing.T, written, read Set, data []byte) {
	t.Helper()
	require.True(t, bytes.Equal(data, Bytes(t, read)), "one set has one encoding, and keeps none of what it is given")
	require.Equal(t, written.Len(), read.Len())
	require.Equal(t, written.Cap(), read.Cap())
	require.Equal(t, written.FalsePositiveRate(), read.FalsePositiveRate())
	for i := range uint64(200) {
		for _, h := range []uint64{Hash(1, i), Hash(Absent, i)} {
			require.Equal(t, written.ContainsHash(h), read.ContainsHash(h))
		}
		if written, ok := written.(Remover); ok {
			require.Equal(t, written.CountHash(Hash(1, i)), read.(Remover).CountHash(Hash(1, i)))
		}
	}
}

// Zero checks that a zero set has nothing and cannot be written, so that nobody
// loses keys to one.
func Zero[P Set](t *testing.T, zero func() P) {
	t.Helper()
	s := zero()
	s.Reset()
	require.False(t, s.Contains(nil))
	require.False(t, s.ContainsHash(1))
	require.Zero(t, s.Len()+s.Cap()+s.Size())
	require.Zero(t, Fullness(s)+s.FalsePositiveRate())
	_, err := s.MarshalBinary()
	require.ErrorContains(t, err, "a zero set cannot be written; make it with ")
	_, err = s.AppendBinary(nil)
	require.Error(t, err)
	n, err := s.WriteTo(io.Discard)
	require.Error(t, err)
	require.Zero(t, n)
}

// DamageSet checks that each truncation, each extension and each flipped bit is
// refused, and leaves the set that should have been replaced as it was.
func DamageSet[P Set](t *testing.T, s Set, zero func() P) {
	t.Helper()
	data := Bytes(t, s)
	victim := zero()
	require.NoError(t, victim.UnmarshalBinary(data))
	refused := func(bad []byte, short bool) {
		t.Helper()
		err := victim.UnmarshalBinary(bad)
		require.ErrorIs(t, err, frame.ErrCorrupt)
		require.ErrorIs(t, err, base.ErrCorruption)
		if short {
			n, err := victim.ReadFrom(bytes.NewReader(bad))
			require.ErrorIs(t, err, frame.ErrCorrupt)
			require.LessOrEqual(t, n, int64(len(bad)))
		}
	}
	for size := range data {
		refused(data[:size], true)
		refused(data[len(data)-size:], true)
	}
	refused(append(slices.Clone(data), 0), false)
	for bit := range 8 * len(data) {
		bad := slices.Clone(data)
		bad[bit/8] ^= 1 << (bit % 8)
		refused(bad, true)
	}
	require.Equal(t, data, Bytes(t, victim))

	n, err := victim.ReadFrom(io.MultiReader(bytes.NewReader(data[:len(data)/2]), iotest.ErrReader(io.ErrClosedPipe)))
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.Equal(t, int64(len(data)/2), n)
	require.Equal(t, data, Bytes(t, victim))
}

// GoldenSet compares a set's bytes with the golden file family/name, which -update writes. A
// difference means that stored sets can no longer be read.
func GoldenSet(t *testing.T, name string, s Codec) {
	t.Helper()
	golden.File(t, goldenPath(path.Split(name)), hex.Dump(Bytes(t, s)))
}

// Samples checks sets that together use every part of a family's format: their
// bytes are those of testdata/set-<name>.golden, come back, and are refused when
// they are damaged.
func Samples[P Set](t *testing.T, family string, samples map[string]P, zero func() P) {
	t.Helper()
	for name, s := range samples {
		data := Bytes(t, s)
		text := fmt.Sprintf("%s, %d keys, %d bytes\n%s", name, s.Len(), len(data), hex.Dump(data))
		golden.File(t, goldenPath(family, "set-"+name+".golden"), text)
		RoundTrip(t, s, zero)
		DamageSet(t, s, zero)
	}
}
