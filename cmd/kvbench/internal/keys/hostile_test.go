package keys

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/internal/hostile"
	"github.com/siftkv/siftkv/internal/lookuptrace"
)

// A key takes its bytes, 8 for its end and 16 of the table while that doubles.
var linesBound = hostile.Bound{PerByte: 64, Fixed: 512 << 10}

// requireLinesBounded reads a file of keys of at most 100 bytes that unpacks to so many.
func requireLinesBounded(tb testing.TB, file []byte, unpacked int) {
	tb.Helper()
	linesBound.Require(tb, unpacked, func() {
		if text, err := plain(bytes.NewReader(file)); err == nil {
			_, _, _ = readLines(text, 100)
		}
	})
}

func TestHostileKeyFiles(t *testing.T) {
	var text bytes.Buffer
	for i := range 10_000 {
		fmt.Fprintln(&text, i)
	}
	for _, file := range []string{text.String(), strings.Repeat("\n", 100_000), strings.Repeat("a", 1<<20),
		strings.Repeat("ab\r\n", 100_000)} {
		requireLinesBounded(t, []byte(file), len(file))
	}
	for mutant := range hostile.Mutants(text.Bytes()[:2000], 300) {
		requireLinesBounded(t, mutant, len(mutant))
	}
	// Bombs of gzip: one line that never ends, and one that comes again.
	for _, line := range []string{strings.Repeat("a", 32<<20), strings.Repeat("again\n", 4<<20)} {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, err := w.Write([]byte(line))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		require.Less(t, packed.Len(), 100<<10)
		requireLinesBounded(t, packed.Bytes(), packed.Len())
	}
}

func FuzzHostileKeyFile(f *testing.F) {
	f.Add([]byte("a\nb\r\n\nc"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !bytes.HasPrefix(data, gzipMagic) {
			requireLinesBounded(t, data, len(data))
		}
	})
}

// A trace of hashes says how long the keys were, in two bytes, and the keys that are made
// up are as long.
func TestTraceBombsAreRefused(t *testing.T) {
	bomb := hashedTrace(t, 4000, 60_000)
	hostile.Bound{PerByte: 4 << 10, Fixed: 4 * madeUpFree}.Require(t, fileSize(t, bomb), func() {
		_, err := OpenTrace(bomb, 0, 1)
		require.ErrorIs(t, err, bench.ErrUsage)
		require.ErrorContains(t, err, "the keys of 60000 bytes")
	})
	for _, path := range []string{hashedTrace(t, 40, 60_000), hashedTrace(t, 40_000, 2000)} {
		trace, err := OpenTrace(path, 0, 1)
		require.NoError(t, err)
		require.Positive(t, trace.Present())
	}
}

// hashedTrace writes a trace of so many lookups of distinct keys, as hashes.
func hashedTrace(t *testing.T, lookups, keySize int) (path string) {
	t.Helper()
	var out bytes.Buffer
	r, err := lookuptrace.NewRecorder(&out, lookuptrace.Options{})
	require.NoError(t, err)
	key := make([]byte, keySize)
	for i := range lookups {
		copy(key, strconv.Itoa(i))
		r.Record(key, xxhash.Sum64(key), true, true)
	}
	require.NoError(t, r.Close())
	path = filepath.Join(t.TempDir(), "x.trace")
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
	return path
}

func fileSize(t *testing.T, path string) int {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return int(info.Size())
}
