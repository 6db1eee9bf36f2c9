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
		got, err := Read(t.Context(), path, nil)
		require.NoError(t, err)
		settings := got.Settings.(map[string]any)
		require.Equal(t, !keys, settings["hashed"])
		require.Equal(t, false, settings["unfinished"])
		require.Equal(t, []string{"1 lookup did not find a key that others found: it was written or deleted " +
			"meanwhile; a replay takes it as existing"}, got.Environment.Warnings)
		for _, want := range []struct {
			of     tidy.Cell
			values map[string]float64
		}{
			{tidy.Cell{}, map[string]float64{"size": float64(out.Len()), "lookups": 16, "value-lookups": 11,
				"missed-lookups": 1, "dropped": 0, "least-key": 3, "mean-key": float64(7*3+2*4+4+2*4+3*5+7) / 16,
				"largest-key": 7}},
			{tidy.Of("of", "scans"), map[string]float64{"scans": 3, "bounded": 2, "backward": 1, "broken": 2,
				"empty": 1, "keys-only": 1, "entries": 4, "most-entries": 8, "common-bytes": 5}},
			{tidy.Of("keys", "found"), map[string]float64{"lookups": 12, "keys": 4, "once": 1}},
			{tidy.Of("keys", "found", "top", 0.001), map[string]float64{"share": 7.0 / 12}},
			{tidy.Of("keys", "found", "top", 0.01), map[string]float64{"share": 7.0 / 12}},
			{tidy.Of("keys", "found", "top", 0.1), map[string]float64{"share": 7.0 / 12}},
			{tidy.Of("keys", "found", "top", 0.5), map[string]float64{"share": 9.0 / 12}},
			{tidy.Of("keys", "never found"), map[string]float64{"lookups": 4, "keys": 2, "once": 1}},
			{tidy.Of("keys", "never found", "top", 0.001), map[string]float64{"share": 0.75}},
			{tidy.Of("keys", "never found", "top", 0.5), map[string]float64{"share": 0.75}},
		} {
			for metric, value := range want.values {
				require.Equal(t, []float64{value}, got.Values(want.of, metric), "%v %s", want.of, metric)
			}
		}

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = Read(ended, path, nil)
		require.ErrorIs(t, err, context.Canceled)
	}
	_, err := Read(t.Context(), "/nothing/here", nil)
	require.ErrorIs(t, err, bench.ErrUsage)
}
