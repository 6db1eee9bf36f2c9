package traceinfo

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/internal/lookuptrace"
)

func TestATraceIsSummedUp(t *testing.T) {
	for _, keys := range []bool{true, false} {
		var out bytes.Buffer
		r, err := lookuptrace.NewRecorder(&out, lookuptrace.Options{Keys: keys})
		require.NoError(t, err)
		for _, l := range []struct {
			key          string
			found, value bool
			times        int
		}{
			{"hot", true, true, 7}, {"warm", true, true, 2}, {"cold", true, false, 1}, {"gone", true, true, 1},
			{"gone", false, true, 1},
			{"never", false, false, 3}, {"nothing", false, false, 1},
		} {
			for range l.times {
				r.Record([]byte(l.key), xxhash.Sum64String(l.key), l.found, l.value)
			}
		}
		for i, end := range []string{"", "scan-9", "scan-5"} {
			r.RecordScan(&lookuptrace.Scan{Start: lookuptrace.Bound{Set: i > 0, Key: []byte("scan-1")},
				End: lookuptrace.Bound{Set: i > 0, Key: []byte(end)}, Entries: uint64(4 * i), Backward: i == 1,
				Ended: i == 2, KeysOnly: i == 0}, 1)
		}
		require.NoError(t, r.Close())
		path := filepath.Join(t.TempDir(), "t")
		require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
		got, err := Read(t.Context(), path)
		require.NoError(t, err)
		require.Equal(t, !keys, got.Hashed)
		require.EqualValues(t, out.Len(), got.Bytes)
		require.Equal(t, []int64{16, 11, 1}, []int64{got.Lookups, got.Values, got.Missed})
		require.Equal(t, Scans{Scans: 3, Bounded: 2, Backward: 1, Broken: 2, Empty: 1, KeysOnly: 1, Entries: 4, Most: 8,
			Common: 5}, got.Scans)
		require.Equal(t, Sizes{Min: 3, Mean: float64(7*3+2*4+4+2*4+3*5+7) / 16, Max: 7}, got.Sizes)
		require.Equal(t, Part{Lookups: 12, Keys: 4, Once: 1,
			Top: []Share{{0.001, 7.0 / 12}, {0.01, 7.0 / 12}, {0.1, 7.0 / 12}, {0.5, 9.0 / 12}}}, got.Existing)
		require.Equal(t, Part{Lookups: 4, Keys: 2, Once: 1,
			Top: []Share{{0.001, 0.75}, {0.01, 0.75}, {0.1, 0.75}, {0.5, 0.75}}}, got.Absent)
		rows := got.Rows(nil)
		require.Equal(t, []float64{16}, rows.Values(tidy.Cell{}, "lookups"))
		require.Equal(t, []float64{8}, rows.Values(tidy.Of("of", "scans"), "most-entries"))
		require.Equal(t, []float64{4}, rows.Values(tidy.Of("keys", "found"), "keys"))
		require.Equal(t, []float64{0.75}, rows.Values(tidy.Of("keys", "never found", "top", 0.5), "share"))

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = Read(ended, path)
		require.ErrorIs(t, err, context.Canceled)
	}
	_, err := Read(t.Context(), "/nothing/here")
	require.ErrorIs(t, err, bench.ErrUsage)
}
