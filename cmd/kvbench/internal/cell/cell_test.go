package cell

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/internal/cli/progress"
	"github.com/siftkv/siftkv/internal/scale"
)

// small are the settings of a cell of a fraction of a second.
func small() Settings {
	s := Default()
	s.Keys, s.Lookups, s.Reps, s.Cache, s.Memtable = "3000", 600, 2, 1<<20, 256<<10
	return s
}

func newLab(t *testing.T) *Lab {
	t.Helper()
	parent := t.TempDir()
	l, err := NewLab(parent, []string{"kvbench"}, progress.New(io.Discard, "none"))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		left, err := os.ReadDir(parent)
		require.NoError(t, err)
		require.Empty(t, left, "the temporary stores are removed")
	})
	return l
}

func TestEveryEngineAndShape(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, tc := range []struct{ engine, filter, shape, workload, state, budget string }{
		{"null", "none", Settled, Uniform, Warm, Uniform},
		{"siftkv", "none", Settled, Uniform, Warm, Uniform},
		{"siftkv", "oracle", Young + ":3", Uniform, Warm, Uniform},
		{"siftkv", "bloom:10", Grown, Zipfian, Warm, Uniform},
		{"siftkv", "bloom:10", Overwritten + ":2", Uniform, Warm, Uniform},
		{"pebble", "own:10", Overwritten + ":2", Uniform, Warm, Uniform},
		{"siftkv", "bloom:10", Grown, Uniform, Cold, Spread},
		{"pebble", "none", Settled, Uniform, Cold, Uniform},
		{"pebble", "own:10", Young + ":3", Uniform, Warm, Uniform},
		{"pebble-iterator", "own:10", Young + ":3", Zipfian + ":0.5", Warm, Uniform},
		{"pebble", "blocked:10", Grown, Uniform, Warm, Uniform},
		{"badger", "own:10", Settled, Uniform, Warm, Uniform},
		{"goleveldb", "own:10", Settled, Zipfian, Warm, Uniform},
		{"bbolt", "none", Settled, Uniform, Warm, Uniform},
	} {
		s := small()
		s.Engine, s.Filter, s.Shape, s.Workload, s.State, s.Budget = tc.engine, tc.filter, tc.shape, tc.workload,
			tc.state, tc.budget
		t.Run(s.Name(), func(t *testing.T) {
			r, err := l.Run(t.Context(), s)
			require.NoError(t, err)
			require.NoError(t, r.Identities.Err())
			require.Equal(t, s.Engine == "pebble-iterator", r.Build.Reused, "the iterator reads the files of Get")
			for _, kind := range engine.Kinds {
				p := r.Phase(kind)
				require.Equal(t, 1200, p.Lookups)
				require.EqualValues(t, 300, p.Latency.Lookups)
				require.True(t, slices.IsSortedFunc(p.Spectrum,
					func(a, b Quantile) int { return int(a.Nanos - b.Nanos) }))
				at := slices.IndexFunc(p.Spectrum, func(q Quantile) bool { return q.Percentile == 99 })
				require.Equal(t, p.Latency.P99, p.Spectrum[at].Nanos)
			}
			if s.Engine == "null" || len(r.Shape.Levels) == 0 {
				require.Contains(t, []string{"null", "bbolt", "badger"}, s.Engine)
				return
			}
			if m := r.Metric(StoreKind, "write-amp"); m != nil {
				require.Positive(t, m.Value)
			}
			total := r.Shape.Total()
			switch s.Shape {
			case Settled:
				require.True(t, r.Build.Settled || s.Engine == "badger", "Badger ends its compactions when it sees fit")
			case Grown:
				require.GreaterOrEqual(t, len(r.Shape.Levels), 2)
			case Overwritten + ":2":
				require.Equal(t, 6000, r.Build.Rewritten)
				require.GreaterOrEqual(t, total.Entries, int64(3000))
				require.Greater(t, r.Metric(StoreKind, "written/user").Value, 1.0)
			default:
				require.Equal(t, 3, r.Shape.Levels[0].Files)
				require.EqualValues(t, 3000, r.Shape.Levels[len(r.Shape.Levels)-1].Entries)
			}
			require.InDelta(t, float64(total.Bytes)/float64(r.Build.LiveBytes),
				r.Metric(StoreKind, "space-amp").Value, 1e-9)
			if s.State == Cold && r.PageCache.Impossible == "" {
				require.True(t, r.PageCache.Dropped)
			}
			if s.Engine == "siftkv" {
				require.NotEmpty(t, r.Levels)
				require.Positive(t, r.Metric("existing", "decoded-bytes/op").Value)
			}
			if s.Filter == "oracle" {
				require.Zero(t, r.Metric("absent", "false-positives/op").Value)
				require.Zero(t, r.Metric("absent", "blocks/op").Value)
			}
		})
	}
}

// exact returns what must be equal in two runs of a cell.
func exact(r *Result) string {
	out := []string{fmt.Sprintf("%+v %+v %+v", r.Shape, r.Existing.Counters, r.Absent.Counters)}
	for _, m := range r.Metrics {
		if m.Exact {
			out = append(out, fmt.Sprintf("%s %v", m.Name(), m.Value))
		}
	}
	return strings.Join(out, "\n")
}

func TestCountersAreEqualInTwoRuns(t *testing.T) {
	t.Parallel()
	for _, shape := range []string{Settled, Grown, Young + ":2", Overwritten + ":1"} {
		s := small()
		s.Shape, s.Filter, s.Cache = shape, "bloom:8", 64<<10
		var texts []string
		for range 2 {
			r, err := newLab(t).Run(t.Context(), s)
			require.NoError(t, err)
			texts = append(texts, exact(r))
		}
		require.Equal(t, texts[0], texts[1], shape)
		if shape != Grown && !scale.Long() {
			continue
		}

		l := newLab(t)
		other := s
		other.Cache = 1 << 20
		_, err := l.Run(t.Context(), other)
		require.NoError(t, err)
		r, err := l.Run(t.Context(), s)
		require.NoError(t, err)
		require.True(t, r.Build.Reused)
		require.Equal(t, texts[0], exact(r), "a store that was built for another cell answers alike")

		other = s
		other.Seed = 2
		r, err = l.Run(t.Context(), other)
		require.NoError(t, err)
		require.NotEqual(t, texts[0], exact(r), "another seed asks for other keys")
	}
}

func TestCompactionKinds(t *testing.T) {
	t.Parallel()
	runs := map[string]int{}
	writes := map[string]float64{}
	for _, kind := range engine.CompactionStyles {
		s := small()
		s.Keys, s.Shape, s.Filter, s.Compaction = "5000", Grown, "bloom:10", kind
		texts := map[string]bool{}
		for range 1 + strings.Count(kind, "tiered") { // of leveled trees another test tells
			r, err := newLab(t).Run(t.Context(), s)
			require.NoError(t, err)
			require.NoError(t, r.Identities.Err())
			texts[exact(r)] = true
			runs[kind], writes[kind] = r.Shape.Total().Runs, r.Metric(StoreKind, "write-amp").Value
			for i, l := range r.Shape.Levels {
				require.Equal(t, l.Runs, r.Levels[i].Runs)
			}
		}
		require.Len(t, texts, 1, "%s: counters differ in two runs", kind)
	}
	require.Greater(t, runs["tiered"], runs["leveled"])
	require.Less(t, writes["tiered"], writes["leveled"])
	s := small()
	s.Compaction = "tiered"
	r, err := newLab(t).Run(t.Context(), s)
	require.NoError(t, err)
	require.True(t, r.Build.Settled, "%+v", r.Shape)
	s.Engine = "pebble"
	require.ErrorIs(t, s.Check(), engine.ErrUnsupported)
}

// Cells of one store may remember false positives or not; the filters err as often either way.
func TestFalsePositivesAreRememberedIfTheCellSaysSo(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	var read, rates []float64
	for _, remember := range []int64{0, 256 << 10} {
		s := Default()
		s.Keys, s.Lookups, s.Reps, s.Filter, s.Workload = "3000", 4000, 1, "blocked:6", Zipfian
		s.Remember = remember
		r, err := l.Run(t.Context(), s)
		require.NoError(t, err)
		require.NoError(t, r.Identities.Err())
		read = append(read, r.Metric("absent", "blocks/op").Value)
		rates = append(rates, r.Metric("absent", "fpr").Value)
		require.Equal(t, remember > 0, r.Metric("absent", "remembered/op").Value > 0)
	}
	require.Less(t, read[1], read[0]/2)
	require.InDelta(t, rates[0], rates[1], 0)
	s := Default()
	s.Engine, s.Remember = "pebble", 256<<10
	require.ErrorIs(t, s.Check(), engine.ErrUnsupported)
}

// TestAnIndexInLeavesTakesLessMemory cuts the index of a cell, whose leaves are then
// read on demand.
func TestAnIndexInLeavesTakesLessMemory(t *testing.T) {
	t.Parallel()
	memory := map[int64]float64{}
	for _, index := range []int64{0, 128} {
		s := small()
		s.Index = index
		r, err := newLab(t).Run(t.Context(), s)
		require.NoError(t, err)
		require.NoError(t, r.Identities.Err())
		require.Equal(t, index, r.Settings.Index)
		memory[index] = r.Metric(StoreKind, "index-memory-bytes").Value
		if index > 0 {
			require.Contains(t, r.Name, "siftkv-blocked-10-index-128B-")
		}
	}
	require.Less(t, memory[128], memory[0]*0.8)
}

func TestNamesTellCellsApart(t *testing.T) {
	t.Parallel()
	s := small()
	require.Regexp(t, regexp.MustCompile(`^siftkv-blocked-10-[0-9a-f]{12}$`), s.Name())
	seen := map[string]string{s.Name(): ""}
	for _, f := range Fields(&s) {
		before := f.Text()
		switch v := f.value.(type) {
		case *string:
			*v += "1"
		case *int64:
			*v++
		case *uint64:
			*v++
		}
		require.NotContains(t, seen, s.Name(), f.Name)
		seen[s.Name()] = f.Name
		require.NoError(t, f.Set(before))
		require.Equal(t, before, f.Text())
	}
	require.Equal(t, small().Text(), s.Text())
	s.Filter, s.Shape = "cuckoo:12,4", "young:4"
	require.Regexp(t, `^siftkv-cuckoo-12-4-young-4-[0-9a-f]{12}$`, s.Name())
}

// keysFile writes a file of keys and returns the settings of a cell with it.
func keysFile(t *testing.T, text string) (path string, s Settings) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "words.txt")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	s = small()
	s.Keys = path
	return path, s
}

func TestAFileOfKeysIsKnownByWhatIsInIt(t *testing.T) {
	t.Parallel()
	words := func(n int) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "word-%05d\n", i)
		}
		return text.String()
	}
	_, a := keysFile(t, words(900))
	_, b := keysFile(t, words(900))
	_, c := keysFile(t, words(901))
	for _, s := range []*Settings{&a, &b, &c} {
		require.NoError(t, s.Check())
		require.NoError(t, s.Check(), "again")
	}
	require.Regexp(t, `^words\.txt@[0-9a-f]{12}$`, a.Keys)
	require.Regexp(t, `^siftkv-blocked-10-words\.txt-[0-9a-f]{12}-[0-9a-f]{12}$`, a.Name())
	require.Equal(t, a.Text(), b.Text())
	require.Equal(t, a.Name(), b.Name())
	require.Equal(t, a.BuildText(), b.BuildText())
	require.NotEqual(t, a.Name(), c.Name())

	l := newLab(t)
	r, err := l.Run(t.Context(), a)
	require.NoError(t, err)
	require.Equal(t, a.Keys, r.Settings.Keys)
	require.Equal(t, a.file.path, r.Keys.Path)
	data, err := json.Marshal(r.Settings)
	require.NoError(t, err)
	var again Settings
	require.NoError(t, json.Unmarshal(data, &again))
	require.Equal(t, a.Text(), again.Text())

	require.NoError(t, os.WriteFile(c.file.path, []byte(words(902)), 0o600))
	_, err = l.Run(t.Context(), c)
	require.ErrorContains(t, err, "the file has changed meanwhile")
	c.Keys = a.file.path // another file, by its path
	r, err = l.Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, a.Keys, r.Settings.Keys)
}

func TestAFileOfKeysOfManySizesOnSeveralEngines(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&text, "https://example.org/%x\xff/%s\r\n\n", i*i, strings.Repeat("y", (i%20)*(i%20)*5))
	}
	_, s := keysFile(t, text.String())
	s.Lookups, s.Reps = 200, 1
	l := newLab(t)
	for _, name := range []string{"null", "siftkv", "pebble", "bbolt"} {
		s.Engine, s.Filter = name, "none"
		r, err := l.Run(t.Context(), s)
		require.NoError(t, err, name)
		require.NoError(t, r.Identities.Err())
		require.Equal(t, 1500, r.Keys.Present+r.Keys.Absent+r.Keys.Outside)
		require.Greater(t, r.Keys.MaxLen, 1500)
	}
}

func TestWrongSettingsSayWhatIsRight(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		field, value, want string
		unsupported        bool
	}{
		{"engine", "rocks", "choose from null, siftkv", false},
		{"filter", "sieve:3", "unknown family", false},
		{"filter", "own:x", "own:10", false},
		{"filter", "own:10", "no filters but those of this project", true},
		{"budget", "large", "choose from uniform, spread", false},
		{"compaction", "sideways", "choose from leveled", false},
		{"shape", "round", "choose from settled, grown, young:N", false},
		{"shape", "young:0", "young:N", false},
		{"workload", "zipfian:2", "a skew above 0", false},
		{"state", "tepid", "choose from warm, cold", false},
		{"compression", "lz4", "choose from none", false},
		{"cache", "1KiB", "cache 1024: want", false},
		{"lookups", "0", "lookups 0: want 1", false},
		{"value-size", "1", "value-size 1: want", false},
		{"index", "63", "index 63: want 64", false},
	} {
		s := small()
		for _, f := range Fields(&s) {
			if f.Name == tc.field {
				require.NoError(t, f.Set(tc.value))
			}
		}
		err := s.Check()
		require.ErrorIs(t, err, bench.ErrUsage, tc.value)
		require.ErrorContains(t, err, tc.want)
		require.Equal(t, tc.unsupported, errors.Is(err, engine.ErrUnsupported), "%s %s", tc.field, tc.value)
	}
	s := small()
	s.Engine, s.Filter, s.Index = "goleveldb", "own:10", 64<<10
	require.ErrorIs(t, s.Check(), engine.ErrUnsupported)
	s = small()
	s.Filter, s.Budget = "xor:8", Spread
	require.NoError(t, s.Check())
	s.Filter = "none"
	require.ErrorIs(t, s.Check(), engine.ErrUnsupported)
	for _, bad := range [][2]string{{"cache", "much"}, {"lookups", "many"}, {"seed", "-1"}, {"engine", " "}} {
		for _, f := range Fields(&s) {
			if f.Name == bad[0] {
				require.ErrorIs(t, f.Set(bad[1]), bench.ErrUsage)
			}
		}
	}
}

func TestJSONKeepsEverything(t *testing.T) {
	t.Parallel()
	r, err := newLab(t).Run(t.Context(), small())
	require.NoError(t, err)
	data, err := json.Marshal(r)
	require.NoError(t, err)
	var again Result
	require.NoError(t, json.Unmarshal(data, &again))
	twice, err := json.Marshal(&again)
	require.NoError(t, err)
	require.Equal(t, string(data), string(twice))
}

// forgetful loses every key.
type forgetful struct{ engine.Store }

func (f forgetful) NewReader(a engine.Access, k engine.Kind) (engine.Reader, error) {
	r, err := f.Store.NewReader(a, k)
	return forgetfulReader{r}, err
}

type forgetfulReader struct{ engine.Reader }

func (forgetfulReader) Get(dst, _ []byte) ([]byte, bool, error) { return dst, false, nil }

func TestAWrongAnswerEndsTheCell(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Wrap = func(_ string, s engine.Store) engine.Store { return forgetful{s} }
	_, err := l.Run(t.Context(), small())
	require.ErrorIs(t, err, bench.ErrWrongAnswer)
	l.Wrap = nil
	_, err = l.Run(t.Context(), small())
	require.NoError(t, err, "the lab goes on")
}

func TestAStoreThatDoesNotFitIsRefusedBeforeItIsLoaded(t *testing.T) {
	t.Parallel()
	lab := newLab(t)
	s := small()
	s.Keys, s.ValueSize = "1000000000", keys.MaxValueSize
	_, err := lab.Run(t.Context(), s)
	require.ErrorIs(t, err, bench.ErrUsage)
	require.ErrorContains(t, err, "free; choose fewer keys")
	left, err := os.ReadDir(lab.dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
