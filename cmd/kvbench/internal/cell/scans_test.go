package cell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// scanned runs a cell of scans under three young files.
func scanned(t *testing.T, l *Lab, ranges, scan string) *Result {
	t.Helper()
	s := small()
	s.Keys, s.Shape, s.Range, s.Scan = "20000", Young+":3", ranges, scan
	r, err := l.Run(t.Context(), s)
	require.NoError(t, err)
	require.NoError(t, r.Identities.Err())
	require.Len(t, r.Scans.Repetitions, 2)
	require.Equal(t, 600, r.Scans.Scans)
	return r
}

func perScan(t *testing.T, r *Result, unit string) float64 {
	t.Helper()
	m := r.Metric(ScanKind, unit)
	require.NotNil(t, m, unit)
	return m.Value
}

// Range filters spare empty scans the young files, and no scan that finds something any entry.
func TestScansAreCounted(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, scan := range []string{"0", "0:0.01", "0:1"} {
		none := scanned(t, l, "", scan)
		require.Greater(t, perScan(t, none, "files/op"), 3.8, "three young files and the last level")
		require.Zero(t, perScan(t, none, "denied/op"))
		require.Equal(t, perScan(t, none, "files/op"), perScan(t, none, "empty/op"))

		cut := scanned(t, l, "cut:8", scan)
		require.Equal(t, perScan(t, none, "files/op"), perScan(t, cut, "files/op"))
		require.Greater(t, perScan(t, cut, "denied/op"), 2.7)
		require.Less(t, perScan(t, cut, "blocks/op"), 0.5*perScan(t, none, "blocks/op"))

		oracle := scanned(t, l, "oracle+last", scan)
		require.Zero(t, perScan(t, oracle, "false-positives/op"))
		require.Zero(t, perScan(t, oracle, "blocks/op"))
		require.Zero(t, oracle.Scans.Entries)
	}
	for scan, entries := range map[string]int{"1": 1, "10": 10} {
		r := scanned(t, l, "cut:8", scan)
		require.Equal(t, 2*600*entries, r.Scans.Entries)
		require.GreaterOrEqual(t, perScan(t, r, "with-entries/op"), 1.0)
	}
	behind := scanned(t, l, "cut:8+last", Behind)
	require.Greater(t, perScan(t, behind, "blocks/op"), 0.99, "the last level's filter knows the key no better")
}

func TestScansAreTheSameInTwoRuns(t *testing.T) {
	t.Parallel()
	a, b := scanned(t, newLab(t), "cut:4", "0"), scanned(t, newLab(t), "cut:4", "0")
	for i := range a.Scans.Repetitions {
		require.Equal(t, a.Scans.Repetitions[i].Counters, b.Scans.Repetitions[i].Counters)
	}
}

func TestScansOfAFileOfKeys(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "names.txt")
	var text strings.Builder
	for i := range 3000 {
		text.WriteString(strings.Repeat("ab", i%7) + string(rune('a'+i%26)) + strings.Repeat("c", i/500) + "\n")
		text.WriteString("name-" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676)) + "\n")
	}
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
	s := small()
	s.Keys, s.Scan, s.Range = path, "0", "cut:6+last"
	r, err := newLab(t).Run(t.Context(), s)
	require.NoError(t, err)
	require.NoError(t, r.Identities.Err())
	require.Zero(t, r.Scans.Entries)
	s.Scan = "0:0.1"
	require.ErrorIs(t, s.Check(), engine.ErrUnsupported)
}

// Cells without scans and range filters have the names that they had before there were any.
func TestUsualScansAreNotInNames(t *testing.T) {
	t.Parallel()
	s := Default()
	require.NotContains(t, s.Text(), "scan=")
	require.NotContains(t, s.Text(), "range=")
	name := s.Name()
	for _, f := range Fields(&s) {
		require.NoError(t, f.Set(f.Text()), f.Name)
	}
	require.Equal(t, name, s.Name())
	s.Scan = "10"
	require.Contains(t, s.Text(), "scan=10")
	require.Contains(t, s.Name(), "scan-10")
}

func TestWrongScansSayWhatIsRight(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(s *Settings)
		want   string
	}{
		"no number":  {func(s *Settings) { s.Scan = "few" }, "choose from none, 0, 0:WIDTH"},
		"negative":   {func(s *Settings) { s.Scan = "-1" }, "choose from none"},
		"width":      {func(s *Settings) { s.Scan = "0:0" }, "choose from none"},
		"nan":        {func(s *Settings) { s.Scan = "0:NaN" }, "choose from none"},
		"wide":       {func(s *Settings) { s.Scan = "10:1" }, "choose from none"},
		"filter":     {func(s *Settings) { s.Range = "blocked:10" }, "unknown family"},
		"prefix":     {func(s *Settings) { s.Range = "prefix:fixed:0" }, "the length of a prefix"},
		"engine":     {func(s *Settings) { s.Engine, s.Scan = "pebble", "10" }, "only siftkv"},
		"range else": {func(s *Settings) { s.Engine, s.Range = "pebble", "cut:6" }, "only siftkv"},
		"threads":    {func(s *Settings) { s.Threads, s.Scan = 2, "10" }, "one thread"},
	} {
		t.Run(name, func(t *testing.T) {
			s := small()
			c.change(&s)
			err := s.Check()
			require.ErrorIs(t, err, bench.ErrUsage)
			require.ErrorContains(t, err, c.want)
		})
	}
}
