package backup

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/hostile"
)

// A reader has one frame, and the description.
var hostileBound = hostile.Bound{PerByte: 8, Fixed: 3 * MaxPayload}

// requireBounded reads a stream, from its beginning or as the end of one.
func requireBounded(tb testing.TB, stream []byte, id uint64, offset int64) {
	tb.Helper()
	hostileBound.Require(tb, len(stream), func() {
		r, err := NewReader(bytes.NewReader(stream))
		if err != nil {
			return
		}
		if !r.Started() {
			r.Resume(id, offset)
		}
		for ok := true; ok && err == nil; {
			_, ok, err = r.NextFile()
		}
	})
}

// resealed makes the checksums right of the preamble and of the frames that lengths lead
// to.
func resealed(stream []byte) []byte {
	if len(stream) < preambleSize {
		return stream
	}
	stream = slices.Clone(stream)
	binary.LittleEndian.PutUint32(stream[24:], base.Checksum(0, 0, stream[:24]))
	id := binary.LittleEndian.Uint64(stream[16:])
	for at := preambleSize; at+frameHeaderSize <= len(stream); {
		end := uint64(at) + frameHeaderSize + uint64(binary.LittleEndian.Uint32(stream[at+4:]))
		if end > uint64(len(stream)) {
			break
		}
		binary.LittleEndian.PutUint32(stream[at:], base.Checksum(id, uint64(at), stream[at+4:end]))
		at = int(end)
	}
	return stream
}

func TestHostileStreams(t *testing.T) {
	for _, hasBlobs := range []bool{false, true} {
		stream, whole := sampleOf(t, hasBlobs)
		for mutant := range hostile.Mutants(stream, 1500) {
			requireBounded(t, resealed(mutant), 0, 0)
		}
		for mutant := range hostile.Mutants(stream[whole[0]:], 500) {
			requireBounded(t, mutant, 0xabc, whole[0])
		}
	}
	stream, _ := sample(t)
	// A file of 2^63-1 bytes, of which none comes, and a description without an end.
	file := appendFrame(slices.Clone(stream[:HeadSize]), 0xabc, typeFile, appendUint64s(nil, 1, 1, 1<<63-1))
	requireBounded(t, file, 0, 0)
	description := slices.Clone(stream[:HeadSize])
	for range 2000 {
		description = appendFrame(description, 0xabc, typeDescription, make([]byte, 100))
	}
	requireBounded(t, description, 0, 0)
}

// appendFrame appends a frame to a stream that begins with its preamble.
func appendFrame(stream []byte, id uint64, t frameType, payload []byte) []byte {
	at := len(stream)
	stream = append(stream, 0, 0, 0, 0)
	stream = binary.LittleEndian.AppendUint32(stream, uint32(len(payload)))
	stream = append(append(stream, byte(t)), payload...)
	binary.LittleEndian.PutUint32(stream[at:], base.Checksum(id, uint64(at), stream[at+4:]))
	return stream
}

func FuzzHostileStream(f *testing.F) {
	stream, whole := sample(f)
	f.Add(stream, uint64(0), int64(0))
	f.Add(stream[whole[0]:], uint64(0xabc), whole[0])
	withBlobs, whole := sampleOf(f, true)
	f.Add(withBlobs, uint64(0), int64(0))
	f.Add(withBlobs[whole[0]:], uint64(0xabc), whole[0])
	f.Fuzz(func(t *testing.T, b []byte, id uint64, offset int64) {
		requireBounded(t, b, id, offset)
		requireBounded(t, resealed(b), id, offset)
	})
}

// requireMarkBounded decodes a mark.
func requireMarkBounded(tb testing.TB, b []byte) {
	tb.Helper()
	hostile.Bound{PerByte: 4, Fixed: 8 << 10}.Require(tb, len(b), func() { _, _ = DecodeMark(b) })
}

func resealedMark(b []byte) []byte {
	if len(b) < 4 {
		return b
	}
	body := b[:len(b)-4]
	return binary.LittleEndian.AppendUint32(slices.Clone(body), base.Checksum(0, 0, body))
}

func TestHostileMarks(t *testing.T) {
	many := sampleMark()
	var files []File
	for i := range uint64(1000) {
		files = append(files, File{i, i})
	}
	many.SetFiles(files)
	for _, m := range []*Mark{sampleMark(), many} {
		for mutant := range hostile.Mutants(m.Append(nil), 500) {
			requireMarkBounded(t, resealedMark(mutant))
		}
	}
}

func FuzzHostileMark(f *testing.F) {
	f.Add(sampleMark().Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) { requireMarkBounded(t, resealedMark(b)) })
}
