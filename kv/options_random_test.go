package kv

import (
	"math/rand/v2"
	"time"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/budget"
	"github.com/siftkv/siftkv/internal/exactranges"
	"github.com/siftkv/siftkv/sstable"
)

// For TestRandomOptionsAreThoseOfTheSuites, which is outside this package.
var (
	RandomOptions    = randomOptions
	RandomSeparation = sometimesApart
)

// NumCompactions is how many styles of compaction there are.
const NumCompactions = int(numCompactions)

// NumRecoveryModes is how many there are.
const NumRecoveryModes = numRecoveryModes

// modelMerger is associative and not commutative, so that an operand in a wrong place
// shows.
var modelMerger = Append(",")

// randomOptions makes everything small, so that every mechanism is at work in a
// few hundred operations.
func randomOptions(rng *rand.Rand) *Options {
	specs := []string{"none", "bloom:10", "blocked:10", "cuckoo:12", "blocked:4", "cuckoo:8,2", "salted:blocked:4"}
	p, err := filterpolicy.Parse(specs[rng.IntN(len(specs))])
	if err != nil {
		panic(err)
	}
	o := &Options{
		CacheSize:                []int64{-1, 16 << 10, 64 << 10, 8 << 20}[rng.IntN(4)],
		MemtableSize:             64 << 10,
		MaxMemtables:             2 + rng.IntN(3),
		BlockSize:                64 + rng.IntN(1000),
		Compression:              sstable.Compression(rng.IntN(4)),
		Filter:                   p,
		TargetFileSize:           16 << 10,
		BaseLevelSize:            int64(16+rng.IntN(100)) << 10,
		L0CompactionThreshold:    1 + rng.IntN(4),
		MaxConcurrentCompactions: 1 + rng.IntN(3),
		Merger:                   modelMerger,
	}
	o.harness.RangeSize = []int64{0, 500, 5000}[rng.IntN(3)]
	o.SpaceAmplification = []float64{0, 1.1, 2}[rng.IntN(3)]
	if rng.IntN(4) == 0 {
		o.MemoryLimit = 4 << 20
	}
	o.Compaction = CompactionStyle(rng.IntN(int(numCompactions)))
	o.RunsPerLevel = 2 + rng.IntN(3)
	if rng.IntN(4) == 0 {
		o.LevelCompression[1+rng.IntN(lastLevel)] = sstable.Zstd
	}
	if rng.IntN(8) == 0 {
		o.CompactionRate = 32 << 20
	}
	if rng.IntN(4) == 0 {
		o.FilterBudget = int64(1 + rng.IntN(2000))
	}
	if name := []string{"", "fixed:2", "fixed:6", "delimiter:/", "delimiter:0"}[rng.IntN(5)]; name != "" {
		if o.Prefix, err = filterpolicy.ParsePrefix(name); err != nil {
			panic(err)
		}
		o.PrefixOnly = rng.IntN(3) == 0
	}
	if rng.IntN(2) == 0 {
		o.RangeFilter, o.RangeFilterLastLevel = exactranges.Policy{}, rng.IntN(2) == 0
	}
	o.FalsePositiveMemory = []int64{0, -1, budget.MinFalsePositives}[rng.IntN(3)]
	o.harness.OwnTableFrom = []int{0, 0, 1, 400}[rng.IntN(4)]
	o.IdleCompaction = []time.Duration{0, -1, 1, time.Millisecond}[rng.IntN(4)]
	return o
}

// sometimesApart has a store separate values: of any length, of at least 30 bytes, or none that it has not yet.
func sometimesApart(o *Options, rng *rand.Rand) {
	o.SeparateFrom = []int{0, 1, 1, 30}[rng.IntN(4)]
	o.harness.BlobSize = []int64{0, 100, 1 << 10, 16 << 10}[rng.IntN(4)]
	o.BlobSpace = []float64{0, 1.1, 1.1}[rng.IntN(3)]
	if o.Objects == nil {
		o.SeparateAtCommit = o.SeparateFrom > 0 && rng.IntN(2) == 0
		o.harness.MinStreamed = []int64{0, 1, 100}[rng.IntN(3)]
	}
}
