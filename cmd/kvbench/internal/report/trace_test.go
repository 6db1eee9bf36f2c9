package report

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/traceinfo"
	"github.com/siftkv/siftkv/internal/golden"
)

func TestGoldenTrace(t *testing.T) {
	r := &traceinfo.Trace{
		Path: "app.trace", Bytes: 6_627_267,
		Start: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Span: 90 * time.Second,
		Hashed: true, OneIn: 100, Lookups: 600_000, Values: 580_000, Missed: 12, Dropped: 34, Unfinished: true,
		Sizes: traceinfo.Sizes{Min: 5, Mean: 17.25, Max: 130},
		Existing: traceinfo.Part{Lookups: 600_000, Keys: 40_952, Once: 22_963, Top: []traceinfo.Share{
			{OfKeys: 0.001, OfLookups: 0.497}, {OfKeys: 0.01, OfLookups: 0.689}, {OfKeys: 0.1, OfLookups: 0.844},
			{OfKeys: 0.5, OfLookups: 0.949},
		}},
		Scans: traceinfo.Scans{Scans: 12_345, Bounded: 12_000, Backward: 45, Broken: 300, Empty: 7_000, KeysOnly: 5,
			Entries: 3.25, Most: 1_000, Common: 11.5},
	}
	var out bytes.Buffer
	require.NoError(t, Trace(&out, r))
	golden.File(t, "testdata/trace.txt", out.Bytes())
}

// The rows of a trace say all that its text says: there is nothing else to read again.
func TestRowsOfATraceAreShownAgain(t *testing.T) {
	t.Parallel()
	r := &traceinfo.Trace{Path: "app.trace", Missed: 12, Dropped: 34, Unfinished: true, Span: 90 * time.Second,
		Sizes:    traceinfo.Sizes{Mean: 17.25},
		Existing: traceinfo.Part{Top: []traceinfo.Share{{OfKeys: 0.001, OfLookups: 0.497}}}}
	var out bytes.Buffer
	require.NoError(t, Tidy(&out, r.Rows(nil)))
	for _, want := range []string{"17.25", "0.001", "0.497", "span", "12 lookups did not", "were dropped",
		"has no end"} {
		require.Contains(t, out.String(), want)
	}
	require.NotContains(t, out.String(), "s in all")
}
