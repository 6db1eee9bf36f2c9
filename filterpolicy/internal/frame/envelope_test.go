package frame

import (
	"bytes"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
)

const anySize = math.MaxUint64

// appendEnvelope appends the envelope of the payload, which may come in parts.
func appendEnvelope(dst []byte, family Family, version byte, payload ...[]byte) []byte {
	data, err := Envelope{Family: family, Version: version}.Append(dst, append([][]byte{}, payload...))
	if err != nil {
		panic(err)
	}
	return data
}

// writeEnvelope is appendEnvelope for a stream.
func writeEnvelope(w io.Writer, family Family, version byte, payload ...[]byte) (n int64, err error) {
	return Envelope{Family: family, Version: version}.Write(w, payload)
}

func sampleSet() []byte { return appendEnvelope(nil, Counting, 3, []byte("pay"), nil, []byte("load")) }

func TestEnvelopeIsAsDescribed(t *testing.T) {
	data := appendEnvelope([]byte("before"), Counting, 3, []byte("payload"))
	require.Equal(t, "before", string(data[:6]))
	require.Equal(t, sampleSet(), data[6:], "parts leave no trace")
	data = data[6:]
	require.Equal(t, "53494654"+"6e"+"03"+"0000"+"0700000000000000"+hex.EncodeToString([]byte("payload")),
		hex.EncodeToString(data[:23]))
	require.Equal(t, crc32.Checksum(data[:23], crc32.MakeTable(crc32.Castagnoli)),
		uint32(data[23])|uint32(data[24])<<8|uint32(data[25])<<16|uint32(data[26])<<24)
	require.Len(t, data, 7+Overhead)
}

func TestOpenAndReadFromAgree(t *testing.T) {
	for _, size := range []int{0, 1, 7, firstRead - 1, firstRead, firstRead + 1, 3*firstRead + 5, 1 << 20} {
		want := bytes.Repeat([]byte("x-"), size)[:size]
		data := appendEnvelope(nil, Bloom, 1, want)
		var buf bytes.Buffer
		n, err := writeEnvelope(&buf, Bloom, 1, want[:size/3], want[size/3:])
		require.NoError(t, err)
		require.Equal(t, int64(len(data)), n)
		require.Equal(t, data, buf.Bytes())

		payload, version, err := openEnvelope(data, Bloom)
		require.NoError(t, err)
		require.Equal(t, byte(1), version)
		require.True(t, bytes.Equal(want, payload))
		require.Equal(t, len(payload), cap(payload), "a view must not reach the checksum")

		buf.WriteString("what follows")
		for _, r := range []io.Reader{&buf, iotest.OneByteReader(strings.NewReader(string(data)))} {
			payload, version, n, err = readFrom(r, Bloom, uint64(size))
			require.NoError(t, err)
			require.Equal(t, byte(1), version)
			require.Equal(t, int64(len(data)), n)
			require.True(t, bytes.Equal(want, payload))
		}
		require.Equal(t, "what follows", buf.String(), "reading takes one envelope and no more")
	}
}

func TestDamagedEnvelopesAreRefused(t *testing.T) {
	refused := func(data []byte) {
		t.Helper()
		_, _, err := openEnvelope(data, Counting)
		require.ErrorIs(t, err, ErrCorrupt)
		require.ErrorIs(t, err, base.ErrCorruption)
	}
	data := sampleSet()
	for size := range data {
		refused(data[:size])
		refused(data[len(data)-size:])
		_, _, n, err := readFrom(bytes.NewReader(data[:size]), Counting, anySize)
		require.ErrorIs(t, err, ErrCorrupt)
		require.Equal(t, int64(size), n)
	}
	refused(append(slices.Clone(data), 0))
	for bit := range 8 * len(data) {
		bad := slices.Clone(data)
		bad[bit/8] ^= 1 << (bit % 8)
		refused(bad)
		_, _, _, err := readFrom(bytes.NewReader(bad), Counting, anySize)
		require.ErrorIs(t, err, ErrCorrupt)
	}
}

func TestErrorsOfEnvelopesSayWhatIsWrong(t *testing.T) {
	change := func(at int, to byte) []byte {
		data := sampleSet()
		data[at] = to
		return data
	}
	for _, c := range []struct {
		data []byte
		want string
	}{
		{nil, "0 bytes are less than the 20 of an empty one: the filter is cut short"},
		{change(0, 'X'), `no "SIFT" at the start: the bytes are not a filter`},
		{change(4, byte(Bloom)), `family is 'b', want 'n'`},
		{change(6, 1), "the header is damaged, or of a later program"},
		{change(8, 6), "the payload has 7 bytes, the header says 6"},
		{change(16, 'P'), "checksum is "},
	} {
		_, _, err := openEnvelope(c.data, Counting)
		require.ErrorContains(t, err, c.want)
	}
	_, _, _, err := readFrom(bytes.NewReader(sampleSet()), Counting, 6)
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, "the header says 7 bytes, more than the 6 that a filter may have here")
}

// A header that promises much and gives nothing must cost next to nothing.
func TestLyingLengthCostsLittle(t *testing.T) {
	for _, length := range []byte{30, 40, 46} {
		data := sampleSet()[:headerLen]
		copy(data[8:], make([]byte, 8))
		data[8+length/8] = 1 << (length % 8)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, _, err := readFrom(bytes.NewReader(data), Counting, anySize)
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, ErrCorrupt)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4*firstRead))
	}
}

func TestErrorsOfStreamsAreTheirOwn(t *testing.T) {
	broken := errors.New("broken")
	_, _, _, err := readFrom(io.MultiReader(bytes.NewReader(sampleSet()[:20]), iotest.ErrReader(broken)), Counting,
		anySize)
	require.ErrorIs(t, err, broken)
	require.NotErrorIs(t, err, ErrCorrupt)

	for room := range len(sampleSet()) {
		n, err := writeEnvelope(&shortWriter{room: room}, Counting, 3, []byte("payload"))
		require.ErrorIs(t, err, io.ErrShortWrite)
		require.Equal(t, int64(room), n)
	}
}

// A shortWriter takes so many bytes and no more, and does not say so.
type shortWriter struct{ room int }

func (w *shortWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.room)
	w.room -= n
	return n, nil
}

func FuzzEnvelope(f *testing.F) {
	f.Add([]byte{}, byte(Bloom))
	f.Add(sampleSet(), byte(Counting))
	f.Add(appendEnvelope(nil, Bloom, 1), byte(Bloom))
	f.Fuzz(func(t *testing.T, data []byte, letter byte) {
		family := Family(letter)
		payload, version, err := openEnvelope(data, family)
		read, readVersion, n, readErr := readFrom(bytes.NewReader(data), family, anySize)
		require.LessOrEqual(t, n, int64(len(data)))
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		require.NoError(t, readErr)
		require.Equal(t, version, readVersion)
		require.True(t, bytes.Equal(payload, read))
		require.Equal(t, data, appendEnvelope(nil, family, version, payload))
	})
}

var envelope = Envelope{Family: Counting, Version: 3, Made: "counting.New"}

// keep makes a load function that keeps the payload in to.
func keep(to *[]byte) func([]byte) error {
	return func(payload []byte) error { *to = payload; return nil }
}

func TestEnvelopeIsWhatItsMethodsMake(t *testing.T) {
	parts := [][]byte{[]byte("pay"), []byte("load")}
	data, err := envelope.Append([]byte("before"), parts)
	require.NoError(t, err)
	require.Equal(t, "before"+string(sampleSet()), string(data))
	var buf bytes.Buffer
	n, err := envelope.Write(&buf, parts)
	require.NoError(t, err)
	require.Equal(t, int64(len(sampleSet())), n)
	require.Equal(t, sampleSet(), buf.Bytes())

	var got []byte
	data = sampleSet()
	require.NoError(t, envelope.Unmarshal(data, keep(&got)))
	clear(data)
	require.Equal(t, "payload", string(got), "load may keep what it is given")
	buf.WriteString("what follows")
	n, err = envelope.Read(&buf, keep(&got))
	require.NoError(t, err)
	require.Equal(t, int64(len(sampleSet())), n)
	require.Equal(t, "payload", string(got))
	require.Equal(t, "what follows", buf.String())
}

func TestEnvelopeRefusesZeroSets(t *testing.T) {
	data, err := envelope.Append([]byte("before"), nil)
	require.EqualError(t, err, "filterpolicy: a zero set cannot be written; make it with counting.New")
	require.Equal(t, "before", string(data))
	var buf bytes.Buffer
	n, err := envelope.Write(&buf, nil)
	require.ErrorContains(t, err, "counting.New")
	require.Zero(t, n)
	require.Zero(t, buf.Len())
}

func TestEnvelopeRefusesWhatItDoesNotRead(t *testing.T) {
	never := func([]byte) error { panic("load was given what had to be refused") }
	later := appendEnvelope(nil, Counting, 4, []byte("payload"))
	err := envelope.Unmarshal(later, never)
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, "version is 4; this program reads version 3")
	n, err := envelope.Read(bytes.NewReader(later), never)
	require.ErrorIs(t, err, ErrCorrupt)
	require.Equal(t, int64(len(later)), n)

	short := envelope
	short.MaxPayload = 6
	_, err = short.Read(bytes.NewReader(sampleSet()), never)
	require.ErrorContains(t, err, "more than the 6 that a filter may have here")
	require.ErrorIs(t, envelope.Unmarshal(nil, never), ErrCorrupt)
	_, err = envelope.Read(strings.NewReader(""), never)
	require.ErrorIs(t, err, ErrCorrupt)
}

func TestEnvelopeReturnsTheErrorOfLoad(t *testing.T) {
	unknown := errors.New("unknown")
	fail := func([]byte) error { return unknown }
	require.ErrorIs(t, envelope.Unmarshal(sampleSet(), fail), unknown)
	n, err := envelope.Read(bytes.NewReader(sampleSet()), fail)
	require.ErrorIs(t, err, unknown)
	require.Equal(t, int64(len(sampleSet())), n)
}
