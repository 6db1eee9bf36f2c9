package compare

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/page"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

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

// dataBytes returns the bytes of all keys and values.
func (s *ColdSettings) dataBytes(keys int) int64 { return int64(keys) * int64(s.KeySize+s.ValueSize) }

// Trees in which a store is asked.
const (
	TreeCalm    = "as loaded" // the levels that came of the load
	TreeSettled = "settled"   // one sorted run
)

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
	return cmp.Or(checkEngines(c.Engines), bench.CheckTwice("--variant", c.Variants),
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
	need := int64(dataShare[c.Store.Compression]*float64(c.dataBytes(largest))) + c.Memory
	if free, ok := room(dir); ok && free < need {
		return bench.Usagef("--keys %d: the store may take %s while it is compacted, and %s has %s free; choose fewer "+
			"keys, or another directory with --dir", largest, bench.Size(need), filepath.Dir(dir), bench.Size(free))
	}
	return nil
}

// Cold measures every engine at every size, one store at a time. Stores are in a temporary
// directory and gone, like their processes, when it returns.
func Cold(ctx context.Context, c *ColdConfig) (*tidy.Result, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	about := fmt.Sprintf("Larger than memory: keys of %d bytes, values of %d bytes, compression %s; memory limit %s "+
		"for each store; %s lookups of each kind, with nothing in the page cache; seed %d", c.KeySize, c.ValueSize,
		c.Store.Compression, bench.Size(c.Memory), page.Count(c.Lookups), c.Seed)
	return c.measured("cold", about, c.ColdSettings, func(r *tidy.Result, dir string) error {
		if err := c.checkDisk(dir); err != nil {
			return err
		}
		for _, n := range c.Sizes {
			for _, name := range c.Engines {
				for _, v := range c.variantsOf(name, n) {
					s := coldStore{config: c, result: r, engine: name, variant: v, keys: n,
						dir: filepath.Join(dir, "store")}
					if err := s.point(ctx); err != nil {
						return fmt.Errorf("%d keys: %w", n, err)
					}
				}
			}
		}
		return nil
	})
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
