package engine

import (
	"errors"
	"fmt"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/exactranges"
	"github.com/siftkv/siftkv/kv"
)

// NoRange is a store without range filters.
const NoRange = "none"

const (
	prefixFilter = "prefix:" // filters of prefixes by an extractor of filterpolicy.ParsePrefix
	lastLevel    = "+last"   // range filters in the last level too
)

// CheckRange reports what is wrong with the text of a range filter: none, a spec of filterpolicy.ParseRange, oracle,
// either with "+last" for the files of the last level too, or "prefix:" and an extractor of filterpolicy.ParsePrefix.
func CheckRange(text string) error { return setRange(&kv.Options{}, text) }

// setRange sets the options of a store to a range filter. The oracle has the keys themselves.
func setRange(o *kv.Options, text string) error {
	if name, ok := strings.CutPrefix(text, prefixFilter); ok {
		p, err := filterpolicy.ParsePrefix(name)
		if err != nil {
			return bench.Usagef("range: %w", err)
		}
		o.Prefix = p
		return nil
	}
	spec, all := strings.CutSuffix(text, lastLevel)
	if spec == OracleFilter {
		o.RangeFilter = exactranges.Policy{}
	} else {
		p, err := filterpolicy.ParseRange(spec)
		if err != nil {
			return bench.Usagef("range: %w (or oracle, or prefix:fixed:8)", err)
		}
		o.RangeFilter = p
	}
	o.RangeFilterLastLevel = all
	return nil
}

// A Ranger is a store that scans between two bounds and counts what that costs.
type Ranger interface {
	// ScanBetween calls visit with the entries of [lo, hi) in key order, by an iterator of its own. The slices are
	// visit's until it returns.
	ScanBetween(lo, hi []byte, visit func(key, value []byte)) error
	// Scans returns what scans have done since the store was opened.
	Scans() ScanTally
}

// A ScanTally is what scans did in files.
type ScanTally struct {
	Files          uint64 `json:"files"` // within the bounds
	DeniedByPrefix uint64 `json:"denied_by_prefix"`
	DeniedByRange  uint64 `json:"denied_by_range"`
	Empty          uint64 `json:"empty"` // read, and without an entry within the bounds
	WithEntries    uint64 `json:"with_entries"`
	FalsePositives uint64 `json:"false_positives"` // of Empty, a range filter said maybe
	CachedBlocks   uint64 `json:"cached_blocks"`
	DiskBlocks     uint64 `json:"disk_blocks"`
	DiskBytes      uint64 `json:"disk_bytes"`
}

// Denied returns the files that a filter ruled out.
func (t ScanTally) Denied() uint64 { return t.DeniedByPrefix + t.DeniedByRange }

// Blocks returns the data blocks that were looked at, in the cache or on the disk.
func (t ScanTally) Blocks() uint64 { return t.CachedBlocks + t.DiskBlocks }

// Plus returns the sums.
func (t ScanTally) Plus(o ScanTally) ScanTally {
	return t.each(o, func(a, b uint64) uint64 { return a + b })
}

// Minus returns the differences.
func (t ScanTally) Minus(o ScanTally) ScanTally {
	return t.each(o, func(a, b uint64) uint64 { return a - b })
}

func (t ScanTally) each(o ScanTally, f func(a, b uint64) uint64) ScanTally {
	return ScanTally{
		f(t.Files, o.Files), f(t.DeniedByPrefix, o.DeniedByPrefix), f(t.DeniedByRange, o.DeniedByRange),
		f(t.Empty, o.Empty), f(t.WithEntries, o.WithEntries), f(t.FalsePositives, o.FalsePositives),
		f(t.CachedBlocks, o.CachedBlocks), f(t.DiskBlocks, o.DiskBlocks), f(t.DiskBytes, o.DiskBytes),
	}
}

// ScanBetween walks a new iterator with bounds.
func (s *SiftKV) ScanBetween(lo, hi []byte, visit func(key, value []byte)) error {
	it, err := s.db.NewIter(&kv.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return fmt.Errorf("siftkv: new iterator: %w", err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		visit(it.Key(), it.Value())
	}
	return failed("siftkv: scan", errors.Join(it.Error(), it.Close()))
}

// Scans reads the metrics.
func (s *SiftKV) Scans() ScanTally {
	m := s.db.Metrics()
	c := m.Scans()
	return ScanTally{c.Files, c.DeniedByPrefix, c.DeniedByRange, c.Empty, c.WithEntries, c.RangeFalsePositives,
		c.BlocksFromCache, c.BlocksFromDisk, c.BytesFromDisk}
}
