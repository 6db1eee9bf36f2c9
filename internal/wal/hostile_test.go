package wal

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/hostile"
)

// A reader has a block, and the record that it assembles.
var hostileBound = hostile.Bound{PerByte: 16, Fixed: 256 << 10}

// requireBounded reads a log to its end, over what is damaged.
func requireBounded(tb testing.TB, log []byte) {
	tb.Helper()
	hostileBound.Require(tb, len(log), func() {
		r := NewReader(content(log), "f", testID)
		for {
			_, err := r.Next()
			if err != nil && !r.Skip() {
				return
			}
		}
	})
}

// resealed makes the checksums right of the header and of the fragments that lengths lead
// to.
func resealed(log []byte) []byte {
	if len(log) < fileHeaderSize {
		return log
	}
	log = slices.Clone(log)
	binary.LittleEndian.PutUint32(log[24:], base.Checksum(0, 0, log[:24]))
	for at := fileHeaderSize; at+headerSize <= len(log); {
		if roomAt(int64(at)) == 0 {
			at = int(nextBlock(int64(at)))
			continue
		}
		end := at + headerSize + int(binary.LittleEndian.Uint16(log[at+4:]))
		if end > min(len(log), int(nextBlock(int64(at)))) {
			break
		}
		binary.LittleEndian.PutUint32(log[at:], base.Checksum(testID, uint64(at), log[at+4:end]))
		at = end
	}
	return log
}

func TestHostileLogs(t *testing.T) {
	for _, sample := range sampleLogs(t) {
		random := 300
		if len(sample.log) > 10*blockSize {
			random = 10
		}
		for mutant := range hostile.Mutants(sample.log[:min(len(sample.log), 3*blockSize)], random) {
			requireBounded(t, resealed(mutant))
		}
	}
	// Records of a thousand fragments each, and none that ends.
	for _, typ := range []fragmentType{typeFirst, typeMiddle, typeSynced} {
		log := appendFileHeader(nil, testID)
		for len(log) < blockSize-100 {
			log = appendFragment(log, testID, int64(len(log)), typ, bytes.Repeat([]byte{1}, 8))
		}
		requireBounded(t, log)
	}
}

func FuzzHostileLog(f *testing.F) {
	f.Add(sampleLogs(f)[0].log)
	f.Fuzz(func(t *testing.T, log []byte) {
		requireBounded(t, log)
		requireBounded(t, resealed(log))
	})
}
