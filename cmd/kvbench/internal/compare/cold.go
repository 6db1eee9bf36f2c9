package compare

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// ColdSchema names the JSON form of a ColdResult.
const ColdSchema = "kvbench.cold/v1"

// A ColdConfig says what to measure of stores that are larger than memory. Every field is
// needed.
type ColdConfig struct {
	ColdSettings
	Setup
}

// ColdSettings are those of a run.
type ColdSettings struct {
	Engines   []string        `json:"engines"`  // of engine.Peers
	Variants  []string        `json:"variants"` // of SiftKV; the first at every size, the others at the largest
	Sizes     []int           `json:"sizes"`    // numbers of keys
	KeySize   int             `json:"key_bytes"`
	ValueSize int             `json:"value_bytes"`
	Memory    int64           `json:"memory_limit_bytes"` // of each store
	Lookups   int             `json:"lookups"`            // of each kind, timed; as many before, which are not
	Seed      uint64          `json:"seed"`
	Store     engine.Settings `json:"store"` // CacheBytes and MemtableBytes are not used
}

// ColdSizes returns numbers of keys up to limit, each ten times the one before.
func ColdSizes(limit int) []int {
	sizes := []int{limit}
	for n := limit / 10; n >= minKeys && len(sizes) < 3; n /= 10 {
		sizes = append(sizes, n)
	}
	slices.Reverse(sizes)
	return sizes
}

// A ColdResult is everything a run has found out.
type ColdResult struct {
	Schema      string              `json:"schema"`
	Environment environ.Environment `json:"environment"`
	Settings    ColdSettings        `json:"settings"`
	Points      []ColdPoint         `json:"points"` // by size, then by engine
	WallSeconds float64             `json:"wall_seconds"`
}

// A ColdPoint is one engine with one number of keys.
type ColdPoint struct {
	Engine  string `json:"engine"`
	Variant string `json:"variant,omitempty"` // of SiftKV
	Keys    int    `json:"keys"`

	LoadSeconds   float64 `json:"load_seconds"`   // until the last batch was accepted
	CalmSeconds   float64 `json:"calm_seconds"`   // from then on, until there was nothing left to compact
	SettleSeconds float64 `json:"settle_seconds"` // to have everything in one sorted run
	CPUSeconds    float64 `json:"cpu_seconds"`    // of the process, for the first two
	WrittenBytes  int64   `json:"written_bytes"`  // by the first two
	SettleWritten int64   `json:"settle_written_bytes"`
	PeakDisk      int64   `json:"peak_disk_bytes"`   // of the files at most, in all three
	PeakMemory    int64   `json:"peak_memory_bytes"` // of the process, resident, in the first two

	States []ColdState `json:"states"` // by tree
}

// Name is the engine with its variant.
func (p *ColdPoint) Name() string { return p.NameOf(p.Engine) }

// NameOf is the name of an engine that asks the store, with its variant.
func (p *ColdPoint) NameOf(engine string) string {
	if p.Variant == "" || p.Variant == UsualVariant {
		return engine
	}
	return engine + " " + p.Variant
}

// In returns the store in a tree.
func (p *ColdPoint) In(tree string) ColdState {
	for _, s := range p.States {
		if s.Tree == tree {
			return s
		}
	}
	return ColdState{}
}

// DataBytes returns the bytes of all keys and values.
func (s *ColdSettings) DataBytes(keys int) int64 { return int64(keys) * int64(s.KeySize+s.ValueSize) }

// Trees in which a store is asked.
const (
	TreeCalm    = "as loaded" // the levels that came of the load
	TreeSettled = "settled"   // one sorted run
)

// A ColdState is a store in one of its trees, opened by a new process, with nothing in the
// page cache.
type ColdState struct {
	Engine      string            `json:"engine"` // that of the store, or another way to ask it
	Tree        string            `json:"tree"`
	Shape       engine.LevelShape `json:"shape"` // of all levels
	DiskBytes   int64             `json:"disk_bytes"`
	OpenSeconds float64           `json:"open_seconds"`
	Usage       engine.Usage      `json:"usage"`             // after the lookups
	PeakMemory  int64             `json:"peak_memory_bytes"` // of the process, resident
	BaseMemory  int64             `json:"base_memory_bytes"` // of it, before it opened the store
	Absent      ColdLookups       `json:"absent"`
	Existing    ColdLookups       `json:"existing"`
}

// ColdLookups are lookups of one kind. Times are nanoseconds.
type ColdLookups struct {
	Lookups int64     `json:"lookups"`
	Reads   ColdReads `json:"reads"`
	P50     int64     `json:"p50_ns"`
	P99     int64     `json:"p99_ns"`
	P999    int64     `json:"p99_9_ns"`
	Max     int64     `json:"max_ns"`
}

// Per returns a count per lookup, -1 if it is not known.
func (l *ColdLookups) Per(c engine.Count) float64 {
	if !c.Known() || l.Lookups == 0 {
		return -1
	}
	return float64(c) / float64(l.Lookups)
}

// dataShare is how many times the bytes of all keys and values a store may take while all
// of it is compacted, old files and new: half of a value compresses.
var dataShare = map[string]float64{"none": 2.6, "snappy": 1.9}

func (c *ColdConfig) validate() error {
	for _, name := range c.Variants {
		if _, err := parseVariant(name); err != nil {
			return err
		}
	}
	if len(c.Variants) == 0 {
		return bench.Usagef("--variant: nothing to measure")
	}
	return cmp.Or(checkEngines(c.Engines),
		bench.CheckBounds(
			bench.Bound{Flag: "--memory", Value: c.Memory, Low: 4 << 20, High: 1 << 40},
			bench.Bound{Flag: "--lookups", Value: int64(c.Lookups), Low: 1, High: 1 << 30}),
		checkStores(c.Sizes, c.KeySize, c.ValueSize, c.Store.WithMemoryLimit(c.Memory)))
}

// checkDisk refuses a run whose files would be in memory, or whose largest store does not
// fit on the disk.
func (c *ColdConfig) checkDisk(dir string) error {
	state, err := measure.DropCaches(dir)
	if err != nil {
		return err
	}
	if state.Impossible != "" {
		return bench.Usagef("--cold: %s", state.Impossible)
	}
	largest := slices.Max(c.Sizes)
	need := int64(dataShare[c.Store.Compression]*float64(c.DataBytes(largest))) + c.Memory
	if free, ok := room(dir); ok && free < need {
		return bench.Usagef("--keys %d: the store may take %s while it is compacted, and %s has %s free; choose fewer "+
			"keys, or another directory with --dir", largest, bench.Size(need), filepath.Dir(dir), bench.Size(free))
	}
	return nil
}

// Cold measures every engine at every size, one store at a time. Stores are in a temporary
// directory and gone, like their processes, when it returns.
func Cold(ctx context.Context, c *ColdConfig) (*ColdResult, error) {
	started := time.Now()
	err := c.validate()
	if err != nil {
		return nil, err
	}
	r := &ColdResult{Schema: ColdSchema, Settings: c.ColdSettings}
	err = c.inTemporary("cold", func(dir string) error {
		if err := c.checkDisk(dir); err != nil {
			return err
		}
		r.Environment = c.environment(dir)
		return c.measure(ctx, r, filepath.Join(dir, "store"))
	})
	if err != nil {
		return nil, err
	}
	r.WallSeconds = time.Since(started).Seconds()
	return r, nil
}

// measure adds the points, one store after the other in dir.
func (c *ColdConfig) measure(ctx context.Context, r *ColdResult, dir string) error {
	for _, n := range c.Sizes {
		for _, name := range c.Engines {
			for _, v := range c.variantsOf(name, n) {
				s := coldStore{config: c, engine: name, variant: v, keys: n, dir: dir}
				p, err := s.point(ctx)
				if err != nil {
					return fmt.Errorf("%d keys: %w", n, err)
				}
				r.Points = append(r.Points, *p)
			}
		}
	}
	return nil
}

// variantsOf returns the variants of an engine that are measured with n keys.
func (c *ColdConfig) variantsOf(name string, n int) []variant {
	if name != "siftkv" {
		return []variant{{}}
	}
	var variants []variant
	for i, text := range c.Variants {
		if i > 0 && n < slices.Max(c.Sizes) {
			break
		}
		v, _ := parseVariant(text) // as validated
		variants = append(variants, v)
	}
	return variants
}
