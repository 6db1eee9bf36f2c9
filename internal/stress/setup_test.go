package stress

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

var filters = []string{"none", "bloom:10", "blocked:10", "cuckoo:12", "blocked:4", "xor:8", "fuse:8", "ribbon:7",
	"salted:blocked:8"}

var rangeFilters = []string{"none", "cut:6", "cut:0"}

// A setup is how a round opens the store. Everything is small, so that every mechanism is
// at work in a few hundred operations.
type setup struct {
	opts    kv.Options
	harness harness.Harness
	text    string

	parsed bool // the options are made of their text
	panics bool // functions of the application panic where the plan says so
}

func mustRangeFilter(name string) filterpolicy.RangePolicy {
	p, err := filterpolicy.ParseRange(name)
	if err != nil {
		panic(err)
	}
	return p
}

func mustFilter(name string) filterpolicy.Policy {
	p, err := filterpolicy.Parse(name)
	if err != nil {
		panic(err)
	}
	return p
}

func drawSetup(rng *rand.Rand) setup {
	filter := filters[rng.IntN(len(filters))]
	s := setup{opts: kv.Options{
		CacheSize:                []int64{-1, 32 << 10, 256 << 10, 8 << 20}[rng.IntN(4)],
		MemtableSize:             64 << 10,
		MaxMemtables:             2 + rng.IntN(4),
		BlockSize:                64 + rng.IntN(2000),
		IndexPartition:           []int{0, 64, 512}[rng.IntN(3)],
		Compression:              sstable.Compression(rng.IntN(4)),
		Filter:                   mustFilter(filter),
		TargetFileSize:           16 << 10,
		BaseLevelSize:            int64(16+rng.IntN(100)) << 10,
		L0CompactionThreshold:    1 + rng.IntN(4),
		MaxConcurrentCompactions: 1 + rng.IntN(3),
		Merger:                   kv.Append(operandSeparator),
		Compaction:               []kv.CompactionStyle{kv.Leveled, kv.Tiered, kv.LazyLeveled}[rng.IntN(3)],
		RunsPerLevel:             2 + rng.IntN(3),
		LatencyHistograms:        rng.IntN(4) == 0,
		TraceOpens:               rng.IntN(4) == 0,
		FalsePositiveMemory:      []int64{0, -1, 128}[rng.IntN(3)],
		IdleCompaction:           []time.Duration{0, -1, 1, time.Millisecond}[rng.IntN(4)],
	}}
	o := &s.opts
	if rng.IntN(3) == 0 { // level 0 is soon full
		o.L0SlowdownThreshold = o.L0CompactionThreshold + 1
		o.L0StopThreshold = o.L0SlowdownThreshold + 1 + rng.IntN(3)
	}
	if rng.IntN(4) == 0 {
		o.MemoryLimit = 4 << 20
	}
	if rng.IntN(4) == 0 {
		o.LevelCompression[1+rng.IntN(kv.NumLevels-1)] = sstable.Zstd
	}
	if rng.IntN(8) == 0 {
		o.CompactionRate = 32 << 20
	}
	if rng.IntN(4) == 0 {
		o.FilterBudget = int64(1 + rng.IntN(2000))
	}
	prefix := []string{"", "fixed:2", "fixed:4", "delimiter:/"}[rng.IntN(4)]
	if prefix != "" {
		p, err := filterpolicy.ParsePrefix(prefix)
		if err != nil {
			panic(err)
		}
		o.Prefix, o.PrefixOnly = p, rng.IntN(3) == 0
	}
	if rng.IntN(2) == 0 {
		o.RangeFilter = mustRangeFilter(rangeFilters[rng.IntN(len(rangeFilters))])
		o.RangeFilterLastLevel = rng.IntN(2) == 0
	}
	s.harness.MaxManifestSize = int64(1500 + rng.IntN(6000))
	s.harness.RangeSize = []int64{0, 2 << 10, 16 << 10}[rng.IntN(3)]
	s.harness.OwnTableFrom = []int{0, 0, 1, 1000}[rng.IntN(4)]
	o.SpaceAmplification = []float64{0, 1.1, 2}[rng.IntN(3)]
	s.drawSeparation(rng)
	s.retry([]time.Duration{time.Millisecond, 5 * time.Millisecond, time.Hour}[rng.IntN(3)])
	s.text = fmt.Sprintf("%v, filter %s, prefix %q, compression %v, blocks of %d, %d memtables, level 0 %d/%d/%d, "+
		"%d runs per level",
		o.Compaction, filter, prefix, o.Compression, o.BlockSize, o.MaxMemtables, o.L0CompactionThreshold,
		o.L0SlowdownThreshold, o.L0StopThreshold, o.RunsPerLevel)
	if s.parsed = rng.IntN(3) == 0; s.parsed {
		s.text += ", from text"
	}
	return s
}

// parse makes the options of their text, if the setup says so.
func (s *setup) parse() *Finding {
	if !s.parsed {
		return nil
	}
	o, err := kv.ParseOptions(s.opts.String())
	if err != nil || !reflect.DeepEqual(*o, s.opts) {
		return found("options", "%v: %+v are read back as %+v", err, s.opts, o)
	}
	s.opts = *o
	return nil
}

// checkStored compares what a store says that it was last opened with.
func (s *setup) checkStored(fsys vfs.FS) *Finding {
	stored, err := manifest.Options(fsys, storeDir)
	if err != nil {
		return found("options", "what the store was opened with is not known: %v", err)
	}
	want := s.opts
	if s.panics { // the store does not know the merger, which has no text then
		want.Merger = nil
	}
	o, err := kv.ParseOptions(stored.Text)
	if err != nil || o.String() != want.String() {
		return found("options", "%v: the store was opened with %v, and says %v", err, &want, o)
	}
	return nil
}

// retry says how long the store waits before it tries again what has failed. After an
// hour it never does in a round.
func (s *setup) retry(after time.Duration) {
	s.harness.Backoff = compaction.Backoff{First: after, Max: 4 * after}
}

// resumes reports whether a store that has failed may be waited for.
func (s *setup) resumes() bool { return s.harness.Backoff.First < time.Minute }
