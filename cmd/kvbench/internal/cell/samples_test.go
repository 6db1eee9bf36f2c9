package cell

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/internal/golden"
)

// TestGoldenSamples holds the file of package celltest to what makes it up.
func TestGoldenSamples(t *testing.T) {
	const path = "celltest/samples.json"
	want, err := json.Marshal(samples())
	require.NoError(t, err)
	if golden.Update() {
		golden.Write(t, path, append(want, '\n'))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(got))
	var again []*Result
	require.NoError(t, json.Unmarshal(got, &again))
	all := samples()
	for _, r := range all { // counters by level are in the file as rows
		for _, kind := range engine.Kinds {
			p := r.Phase(kind)
			p.Counters.Levels = nil
			for i := range p.Repetitions {
				p.Repetitions[i].Counters.Levels = nil
			}
		}
	}
	require.Equal(t, all, again, "only counters by level and repetition are lost in the file")
}

// samples makes up the results of package celltest.
func samples() []*Result {
	set := []*Result{
		sample("null", "none", Settled, 0, 0),
		sample("siftkv", "none", Settled, 0, 1),
		sample("siftkv", "bloom:8", Young+":2", 8, 0.02),
		sample("siftkv", "blocked:12", Settled, 12, 0.004),
		sample("pebble", "own:10", Settled, 10, 1),
	}
	set[4].Warnings = []string{"a </script> & a warning"}
	return set
}

// Figures of the made-up results.
const (
	sampleKeys    = 100_000
	sampleLookups = 10_000
	sampleReps    = 2
)

// sample makes up one result.
func sample(eng, filter, shape string, bits, rate float64) *Result {
	s := Default()
	s.Engine, s.Filter, s.Shape, s.Lookups, s.Reps, s.Keys = eng, filter, shape, sampleLookups, sampleReps, "100000"
	r := &Result{
		Name: s.Name(), Settings: s, TimerNs: 40, WallSeconds: 3,
		Environment: environ.Environment{
			Argv: []string{"kvbench", "sweep"}, Started: time.Unix(1e9, 0).UTC(), Revision: "abc123",
			GoVersion: "go1.26.0",
			OS:        "linux", Arch: "amd64", Kernel: "6.1.0", CPU: "A CPU", Cores: 2, GOMAXPROCS: 2,
			RAMBytes:   8 << 30,
			Filesystem: "ext4",
		},
		Keys: keys.Description{Origin: "generated", Seed: 1, Present: sampleKeys, Absent: sampleKeys - 1, MinLen: 16,
			MaxLen: 16, MeanLen: 16},
		Notes: []string{"Made up."}, Warnings: []string{}, Usage: engine.UnknownUsage(),
	}
	r.Build = Build{LoadSeconds: 1, SettleSeconds: 0.5, UserBytes: sampleKeys * 116, LiveBytes: sampleKeys * 116,
		Usage: engine.UnknownUsage(), Settled: shape == Settled}
	if eng != "null" {
		filterBytes := int64(bits * sampleKeys / 8)
		r.Shape.Levels = append(r.Shape.Levels,
			engine.LevelShape{Level: 6, Runs: 1, Files: 3, Bytes: 8_000_000, Entries: sampleKeys,
				FilterBytes: filterBytes, IndexBytes: 65_000})
		r.Build.Usage.Flushed, r.Build.Usage.Compacted = 8_000_000, 8_000_000
		r.BitsPerKey = bits
	}
	young := 0
	if shape != Settled {
		young = 2
		r.Shape.Levels = append([]engine.LevelShape{{Runs: young, Files: young, Bytes: 80_000, Entries: 1000,
			FilterBytes: 1000, IndexBytes: 700}}, r.Shape.Levels...)
	}
	if eng == "siftkv" {
		r.Usage.FilterMemory, r.Usage.IndexMemory, r.Usage.CacheMemory = engine.Count(bits*sampleKeys/8), 66_000, 4<<20
	}
	if bits > 0 && eng == "siftkv" {
		r.Theory = &measure.Theory{BitsPerKey: bits, FPR: rate}
	}
	for i, kind := range engine.Kinds {
		r.Phase(kind).makeUp(eng, kind, rate, bits > 0, young, int64(40+len(filter)*30+50*i))
	}
	r.Metrics = metricsOf(r)
	r.Identities = checkIdentities(r, eng == "null")
	return r
}

// makeUp fills a phase.
func (p *Phase) makeUp(eng string, kind engine.Kind, rate float64, filtered bool, young int, ns int64) {
	h := measure.NewHistogram()
	for i := range int64(1000) {
		_ = h.RecordValue(ns + i*i/1000) // in bounds
	}
	var reps []measure.Repetition
	for i := range int64(sampleReps) {
		c := engine.Counters{Lookups: engine.Unknown, MemtableAnswers: engine.Unknown, Total: engine.UnknownTally()}
		switch eng {
		case "siftkv":
			c = madeUpCounters(kind, rate, filtered, young)
		case "pebble":
			c.Total.BlocksFromCache, c.Total.BlocksFromDisk, c.Total.BytesFromDisk = 2*sampleLookups, 0, 0
		}
		reps = append(reps, measure.Repetition{Lookups: sampleLookups, Nanos: (ns + 10*i) * sampleLookups, Counters: c})
	}
	w := &passes{reps: reps, histogram: h}
	w.summarise(p, 1)
}

// madeUpCounters are those of one repetition in a tree of a level under young files.
func madeUpCounters(kind engine.Kind, rate float64, filtered bool, young int) engine.Counters {
	c := engine.Counters{Lookups: sampleLookups, Levels: make([]engine.Tally, 7)}
	level := func(files, answered engine.Count) engine.Tally {
		t := engine.Tally{FilesConsidered: files, Answered: answered}
		if !filtered {
			t.Unfiltered = files
		} else {
			t.FilterChecks, t.TruePositives = files, answered
			t.FalsePositives = engine.Count(rate * float64(files-answered))
			t.Negatives = files - answered - t.FalsePositives
		}
		t.IndexLookups = t.Unfiltered + t.TruePositives + t.FalsePositives
		t.BlocksFromDisk = t.IndexLookups / 10
		t.BlocksFromCache = t.IndexLookups - t.BlocksFromDisk
		t.BytesFromDisk, t.BytesDecoded = 2000*t.BlocksFromDisk, 4000*t.BlocksFromDisk
		return t
	}
	found := engine.Count(0)
	if kind == engine.Existing {
		found = sampleLookups
	}
	c.Levels[0] = level(engine.Count(young)*sampleLookups, 0)
	c.Levels[6] = level(sampleLookups, found)
	c.Total = engine.Plus(c.Levels[0], c.Levels[6])
	return c
}
