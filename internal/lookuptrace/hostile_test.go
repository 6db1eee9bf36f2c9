package lookuptrace

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/hostile"
)

// goldenNames are traces of both versions.
var goldenNames = []string{"testdata/keys.trace", "testdata/hashes.trace", "testdata/v1-keys.trace",
	"testdata/v1-hashes.trace"}

// A reader has one frame, and another that it reads through.
var hostileBound = hostile.Bound{Fixed: 3 * frameSize}

// requireBounded reads a trace to its end.
func requireBounded(tb testing.TB, data []byte) {
	tb.Helper()
	hostileBound.Require(tb, len(data), func() {
		r, err := NewReader(bytes.NewReader(data), "t")
		for err == nil {
			_, _, err = r.NextRecord()
		}
	})
}

// resealed makes the checksums right of the header and of the frames that lengths lead to.
func resealed(data []byte) []byte {
	if len(data) < headerSize {
		return data
	}
	data = slices.Clone(data)
	binary.LittleEndian.PutUint32(data[headerSize-4:], base.Checksum(0, 0, data[:headerSize-4]))
	id := binary.LittleEndian.Uint64(data[16:])
	for at := headerSize; at+frameHeaderSize <= len(data); {
		end := uint64(at) + frameHeaderSize + uint64(binary.LittleEndian.Uint32(data[at:]))
		payload := data[at+frameHeaderSize : min(end, uint64(len(data)))]
		binary.LittleEndian.PutUint32(data[at+8:], base.Checksum(id, uint64(at), payload))
		binary.LittleEndian.PutUint32(data[at+12:], base.Checksum(id, uint64(at), data[at:at+12]))
		if end > uint64(len(data)) {
			break
		}
		at = int(end)
	}
	return data
}

func TestHostileTraces(t *testing.T) {
	for _, name := range goldenNames {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, data, resealed(data))
		for mutant := range hostile.Mutants(data, 1000) {
			requireBounded(t, resealed(mutant))
		}
	}
}

func FuzzHostileTrace(f *testing.F) {
	for _, name := range goldenNames {
		data, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { requireBounded(t, resealed(data)) })
}
