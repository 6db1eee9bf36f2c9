// Package settest is what every set of an application has to pass, whatever its
// family: its bytes come back, damage to them is refused, forged ones do no
// harm, and its false-positive rate is the promised one.
//
// All randomness is seeded, so a failure repeats.
package settest

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/internal/envelope"
	"github.com/siftkv/siftkv/internal/base"
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
func Bytes(tb testing.TB, s Codec) []byte {
	tb.Helper()
	data, err := s.MarshalBinary()
	require.NoError(tb, err)
	return data
}

// RoundTrip checks that a set's bytes are the same by every way out, and that
// every way in makes a set of the same bytes. zero makes a zero set.
func RoundTrip(t *testing.T, s Codec, zero func() Codec) {
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
	require.True(t, bytes.Equal(data, Bytes(t, u)), "the set kept the bytes it was given")

	buf.WriteString("what follows")
	for _, from := range []io.Reader{&buf, iotest.HalfReader(bytes.NewReader(data))} {
		r := zero()
		n, err = r.ReadFrom(from)
		require.NoError(t, err)
		require.Equal(t, int64(len(data)), n)
		require.True(t, bytes.Equal(data, Bytes(t, r)))
	}
	require.Equal(t, "what follows", buf.String(), "reading takes one set and no more")
}

// Zero checks that a zero set cannot be written, so that nobody loses keys to
// one.
func Zero(t *testing.T, zero func() Codec) {
	t.Helper()
	_, err := zero().MarshalBinary()
	require.ErrorContains(t, err, "make it with ")
	data, err := zero().AppendBinary([]byte("before"))
	require.Error(t, err)
	require.Equal(t, "before", string(data))
	n, err := zero().WriteTo(io.Discard)
	require.Error(t, err)
	require.Zero(t, n)
}

// Damage checks that each truncation, each extension and each flipped bit is
// refused, and leaves the set that should have been replaced as it was.
func Damage(t *testing.T, s Codec, zero func() Codec) {
	t.Helper()
	data := Bytes(t, s)
	victim := zero()
	require.NoError(t, victim.UnmarshalBinary(data))
	refused := func(bad []byte, short bool) {
		t.Helper()
		err := victim.UnmarshalBinary(bad)
		require.ErrorIs(t, err, envelope.ErrCorrupt)
		require.ErrorIs(t, err, base.ErrCorruption)
		if short {
			n, err := victim.ReadFrom(bytes.NewReader(bad))
			require.ErrorIs(t, err, envelope.ErrCorrupt)
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

// Reseal makes the checksum right, as an adversary would.
func Reseal(data []byte) []byte {
	if len(data) < 4 {
		return data
	}
	body := data[:len(data)-4]
	return binary.LittleEndian.AppendUint32(slices.Clone(body), crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

// Forge replaces the byte at a place of the payload, and makes the checksum
// right.
func Forge(data []byte, at int, to byte) []byte {
	forged := slices.Clone(data)
	forged[16+at] = to
	return Reseal(forged)
}

// Fuzz gives a set any bytes, as they come and with their checksum made right.
// What it takes it must be able to write again, the same; use then works with
// the set.
func Fuzz[S Codec](f *testing.F, zero func() S, use func(tb testing.TB, s S), seeds ...[]byte) {
	f.Helper()
	f.Add([]byte{})
	for _, seed := range seeds {
		f.Add(seed)
		f.Add(seed[:len(seed)/2])
		f.Add(Forge(seed, 0, 0xff))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, Reseal(data)} {
			s := zero()
			if err := s.UnmarshalBinary(data); err != nil {
				require.ErrorIs(t, err, envelope.ErrCorrupt)
				continue
			}
			require.Equal(t, data, Bytes(t, s))
			streamed := zero()
			n, err := streamed.ReadFrom(bytes.NewReader(data))
			require.NoError(t, err)
			require.Equal(t, int64(len(data)), n)
			use(t, s)
		}
	})
}

var update = flag.Lookup("update")

func init() {
	if update == nil { // package filtertest has it too, and a test may use both
		flag.Bool("update", false, "write the golden files anew")
		update = flag.Lookup("update")
	}
}

// Golden compares a set's bytes with testdata/name, which -update writes. A
// difference means that stored sets can no longer be read.
func Golden(t *testing.T, name string, s Codec) {
	t.Helper()
	path, text := filepath.Join("testdata", name), hex.Dump(Bytes(t, s))
	if update.Value.String() == "true" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run go test with -update")
	require.Equal(t, string(want), text, path)
}
