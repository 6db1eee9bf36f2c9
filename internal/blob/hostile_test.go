package blob

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compression"
	"github.com/siftkv/siftkv/internal/hostile"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/stretchr/testify/require"
)

// What reads of a file may allocate: a value is at most 64 times as large as it is stored, or a
// mebibyte, and it grows as it is appended.
var fileBound = hostile.Bound{PerByte: 4 * compression.MaxExpansion, Fixed: 8 * compression.FreeExpansion}

// requireBounded asks a file of any bytes everything, with a handle that is as bad, and right
// checksums of the record that it leads to.
func requireBounded(tb testing.TB, file []byte, key []byte, h Handle) {
	tb.Helper()
	r, err := NewReader(bytes.NewReader(file), int64(len(file)), ReaderOptions{Name: "000014.blob", ID: testID})
	if err != nil {
		return
	}
	fileBound.Require(tb, len(file), func() { _, _ = ReadInfo(bytes.NewReader(file), int64(len(file)), "") })
	fileBound.Require(tb, len(file), func() { _ = r.Verify(14, nil) })
	fileBound.Require(tb, len(file), func() { _, _ = r.AppendValue(nil, key, h) })
	fileBound.Require(tb, len(file), func() {
		if s, err := r.OpenStream(key, h); err == nil {
			_, _ = io.Copy(io.Discard, s)
		}
	})
	fileBound.Require(tb, len(file), func() {
		s, err := NewScanner(r)
		for err == nil && (s.Next() || s.Skip()) {
			err = s.Check()
		}
	})
}

// resealed makes the checksums of the record at an offset right, if it is one.
func resealed(file []byte, offset int64) []byte {
	if offset < headerSize || offset > int64(len(file)) {
		return file
	}
	b := file[offset:]
	p, err := decodePrefix(b)
	if err != nil || p.length > int64(len(b)) {
		return file
	}
	binary.LittleEndian.PutUint32(b, base.Checksum(testID, uint64(offset), b[sumSize:p.valueAt()]))
	for at := int64(p.valueAt()); at < p.length; at += pieceSize + sumSize {
		end := min(at+pieceSize, p.length-sumSize)
		binary.LittleEndian.PutUint32(b[end:], base.Checksum(testID, uint64(offset+at), b[at:end]))
	}
	return file
}

func hostileFile(tb testing.TB, kind compression.Kind) ([]byte, value) {
	vs := []value{{key: []byte("k"), seq: 5, expiry: 9, bytes: bytes.Repeat([]byte("text"), 100)}, {key: []byte("l")}}
	data, _ := writeValues(tb, kind, vs)
	return data, vs[0]
}

func TestHostileRecordsAllocateInProportion(t *testing.T) {
	for _, kind := range []compression.Kind{compression.None, compression.Snappy, compression.Zstd} {
		data, v := hostileFile(t, kind)
		n := 0
		for mutant := range hostile.Mutants(data[headerSize:headerSize+v.handle.Length], 300) {
			file := append(append(bytes.Clone(data[:headerSize]), mutant...), data[headerSize+v.handle.Length:]...)
			h := v.handle
			h.Length += int64(len(file) - len(data))
			if p, err := decodePrefix(mutant); err == nil {
				h.Size = p.Size
			}
			if n++; n%2 == 0 {
				file = resealed(file, headerSize)
			}
			requireBounded(t, file, v.key, h)
		}
	}
}

// A small record does not decode to a large value, whatever it says.
func TestValueBombsAreRefused(t *testing.T) {
	scale.OneGoroutine(t, "it is about sizes")
	bomb := make([]byte, 48<<20)
	var buf []byte
	stored, kind, err := compression.Compress(&buf, bomb, compression.Snappy)
	require.NoError(t, err)
	require.Equal(t, compression.Snappy, kind)
	var file bytes.Buffer
	w := NewWriter(&file, WriterOptions{Num: 14, ID: testID})
	r := Record{Key: []byte("k"), Compression: kind, Size: 1 << 30, Stored: int64(len(stored))}
	at := 0
	h, err := w.add(&r, func() ([]byte, error) {
		piece := stored[at:min(at+pieceSize, len(stored))]
		at += len(piece)
		return piece, nil
	})
	require.NoError(t, err)
	_, err = w.Finish()
	require.NoError(t, err)
	requireBounded(t, file.Bytes(), r.Key, h)
	_, err = open(t, file.Bytes()).AppendValue(nil, r.Key, h)
	require.ErrorIs(t, err, base.ErrCorruption)
}

// Bytes that look like the beginning of a record with a long key at each place take no more time
// than so many looks at the file.
func TestHostileBytesAreSkippedInProportion(t *testing.T) {
	file := encodeHeader(testID, byKey)
	claim := binary.AppendUvarint([]byte{0, 0, 0, 0, 1}, MaxKey)
	file = append(file, bytes.Repeat(append(claim, 0, 0), 200_000)...)
	s, err := NewScanner(open(t, file))
	require.NoError(t, err)
	require.False(t, s.Next())
	require.False(t, s.Skip())
	require.ErrorIs(t, s.Err(), errTried)
	require.Greater(t, s.tried, -int64(MaxKey+maxPrefix))
}

func FuzzHostileFile(f *testing.F) {
	for _, kind := range []compression.Kind{compression.None, compression.Snappy, compression.Zstd} {
		data, v := hostileFile(f, kind)
		f.Add(data, v.handle.Append(nil))
	}
	f.Fuzz(func(t *testing.T, file, handle []byte) {
		h, err := DecodeHandle(handle)
		if err != nil {
			h = Handle{File: 14, Offset: headerSize, Length: int64(len(file)) - MinSize, Size: 400}
		}
		requireBounded(t, file, []byte("k"), h)
		requireBounded(t, resealed(bytes.Clone(file), h.Offset), []byte("k"), h)
	})
}

func TestHostileHandlesTakeNothing(t *testing.T) {
	h := Handle{File: 14, Ordinal: 3, Offset: 4096, Length: 9, Size: 16384}
	for mutant := range hostile.Mutants(h.Append(nil), 500) {
		hostile.Bound{}.Require(t, len(mutant), func() { _, _ = DecodeHandle(mutant) })
	}
}

func FuzzHandle(f *testing.F) {
	f.Add(Handle{File: 14, Ordinal: 3, Offset: 4096, Length: 16500, Size: 16384}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := DecodeHandle(b)
		if err != nil {
			return
		}
		again, err := DecodeHandle(h.Append(nil))
		require.NoError(t, err)
		require.Equal(t, h, again)
	})
}
