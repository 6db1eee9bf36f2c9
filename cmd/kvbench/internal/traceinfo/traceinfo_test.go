package traceinfo

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/internal/golden"
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
		require.NotContains(t, got.About, "one key in", "every key was recorded")
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

// TestGoldenTrace sums up a trace that lacks what its recorder dropped, and its end.
func TestGoldenTrace(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := &sum{seen: map[uint64]count{}, Walk: &keys.Walk{Header: lookuptrace.Header{Start: start, OneIn: 100},
		Bytes: 6_627_267, Lookups: 2_000, Scans: 3, Dropped: 34, Unfinished: true}}
	for i := range 2_000 { // half of them of one key, and one of each other key that is found
		l := &lookuptrace.Lookup{At: time.Duration(i) * 45 * time.Millisecond, Hash: 1, Size: 17 + i%2, Found: i > 24,
			Value: i%50 != 0}
		if i%2 == 1 {
			l.Hash = uint64(i)
			if l.Found = i%8 != 1; !l.Found {
				l.Hash %= 10
			}
		}
		s.lookup(l)
	}
	for i := range 3 {
		s.scan(&lookuptrace.Scan{At: 90 * time.Second, Start: lookuptrace.Bound{Set: true},
			End: lookuptrace.Bound{Set: i > 0}, Common: 5 * i, Entries: uint64(i * i), Backward: i == 1, Ended: i == 2,
			KeysOnly: i == 0})
	}
	r := s.result("app.trace", nil)
	warnings := r.Environment.Warnings
	require.Len(t, warnings, 3)
	r.Environment = environ.Environment{CPU: "A CPU", Cores: 2, Warnings: warnings}
	var out bytes.Buffer
	require.NoError(t, report.Tidy(&out, r))
	require.NotContains(t, out.String(), "s in all", "no time was measured")
	golden.File(t, "testdata/trace.txt", out.Bytes())
}
