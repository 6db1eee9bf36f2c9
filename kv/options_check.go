package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/budget"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/lookupsample"
)

// A bound is what a number among the options may be.
type bound struct {
	name        string
	value       int64
	least, most int64
	unit        string
}

// check holds every field against its bounds.
func (o *Options) check() error {
	bounds := []bound{
		{"MemtableSize", o.MemtableSize, 64 << 10, 1 << 30, " bytes"},
		{"MaxMemtables", int64(o.MaxMemtables), 2, 64, ""},
		{"MaxOpenFiles", int64(o.MaxOpenFiles), 4, 1 << 30, " files"},
		{"BlockSize", int64(o.BlockSize), 64, 64 << 20, " bytes"},
		{"IndexPartition", int64(o.IndexPartition), 64, 1 << 30, " bytes"},
		{"TargetFileSize", o.TargetFileSize, compaction.MinTargetFileSize, 1 << 40, " bytes"},
		{"BaseLevelSize", o.BaseLevelSize, o.TargetFileSize, 1 << 50, " bytes (TargetFileSize or more)"},
		{"L0CompactionThreshold", int64(o.L0CompactionThreshold), 1, 1000, " files"},
		{"L0SlowdownThreshold", int64(o.L0SlowdownThreshold), int64(o.L0CompactionThreshold), 10_000,
			" files (L0CompactionThreshold or more)"},
		{"L0StopThreshold", int64(o.L0StopThreshold), int64(o.L0SlowdownThreshold) + 1, 100_000,
			" files (more than L0SlowdownThreshold)"},
		{"RunsPerLevel", int64(o.RunsPerLevel), 2, 64, ""},
		{"MaxConcurrentCompactions", int64(o.MaxConcurrentCompactions), 1, 1024, ""},
	}
	if o.LookupSample != 0 {
		bounds = append(bounds, bound{"LookupSample", o.LookupSample, lookupsample.MinBytes, 1 << 30,
			" bytes, or 0 for none"})
	}
	if o.FalsePositiveMemory >= 0 {
		bounds = append(bounds, bound{"FalsePositiveMemory", o.FalsePositiveMemory, budget.MinFalsePositives, 1 << 30,
			" bytes, or a negative number for none"})
	}
	if o.MemoryLimit != 0 {
		bounds = append(bounds, bound{"MemoryLimit", o.MemoryLimit, budget.MinMemory, math.MaxInt64, " bytes"},
			bound{"MemoryLimit", o.MemoryLimit, int64(o.MaxMemtables+1) * o.MemtableSize, math.MaxInt64,
				" bytes (MaxMemtables of MemtableSize, and one more)"})
	}
	for _, b := range bounds {
		if b.value < b.least || b.value > b.most {
			return invalidf("%s is %d: want %d to %d%s", b.name, b.value, b.least, b.most, b.unit)
		}
	}
	if err := errors.Join(o.checkBlocksFit(), o.checkObjects(), o.checkFilters()); err != nil {
		return err
	}
	return o.checkChoices()
}

// invalidf returns an error that matches ErrInvalidOptions.
func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalidOptions, fmt.Sprintf(format, args...))
}

// checkChoices checks the options that are not numbers within bounds.
func (o *Options) checkChoices() error {
	switch {
	case !(o.BlobSpace >= 1.1 && o.BlobSpace <= 1000):
		return invalidf("BlobSpace is %v: want 1.1 to 1000", o.BlobSpace)
	case o.SeparateAtCommit && o.Objects != nil:
		return invalidf("SeparateAtCommit is set: a store in an object store separates values when it flushes them")
	case o.SeparateAtCommit && o.SeparateFrom < 0:
		return invalidf("SeparateAtCommit is set and SeparateFrom is %d: want a number of bytes, or 0 for the default",
			o.SeparateFrom)
	case o.FilterBudget < 0:
		return invalidf("FilterBudget is %d: want a number of bytes, or 0 for none", o.FilterBudget)
	case o.Merger != nil && (o.Merger.Name() == "" || len(o.Merger.Name()) > maxMergerName):
		return invalidf("the name of Merger has %d bytes: want 1 to %d", len(o.Merger.Name()), maxMergerName)
	case o.PrefixOnly && o.Prefix == nil:
		return invalidf("PrefixOnly is set and Prefix is not")
	case o.RecoveryMode >= numRecoveryModes:
		return invalidf("RecoveryMode is %d: want PointInTime, TolerateTornTail, Absolute or SkipCorrupt",
			o.RecoveryMode)
	case o.Compaction >= numCompactions:
		return invalidf("Compaction is %d: want Leveled, Tiered or LazyLeveled", o.Compaction)
	case o.MaxSlotBytes < 0 || o.MaxSlotAge < 0:
		return invalidf("MaxSlotBytes is %d, MaxSlotAge %v: want more than 0, or 0 for the default", o.MaxSlotBytes,
			o.MaxSlotAge)
	case o.CompactionRate != 0 && o.CompactionRate < minCompactionRate:
		return invalidf("CompactionRate is %d: want %d bytes per second or more, or 0 for no bound",
			o.CompactionRate, minCompactionRate)
	case o.FileMode&^fs.ModePerm != 0 || o.FileMode&0o600 != 0o600:
		return invalidf("FileMode is %#o: want permissions with 0600 among them", uint32(o.FileMode))
	case o.PollInterval < 0:
		return invalidf("PollInterval is %v: want a time that is longer than none", o.PollInterval)
	case !(o.SpaceAmplification >= 1.1 && o.SpaceAmplification <= 2):
		return invalidf("SpaceAmplification is %v: want 1.1 to 2", o.SpaceAmplification)
	case !o.Compression.Valid():
		return invalidf("Compression is %d: want sstable.NoCompression, Snappy or Zstd", o.Compression)
	}
	for n, c := range o.LevelCompression {
		if !c.Valid() {
			return invalidf("LevelCompression[%d] is %d: want sstable.NoCompression, Snappy or Zstd", n, c)
		}
	}
	return nil
}

// checkFilters refuses policies whose filters could not be read again: they would never rule anything out.
func (o *Options) checkFilters() error {
	const want = "is of the family %q, which is not filterpolicy's own: want a %s"
	families := append(filterpolicy.Families(), filterpolicy.SaltedName)
	if p := o.Filter; p != nil && !slices.Contains(families, p.Name()) {
		if _, ok := p.(filterpolicy.Decoder); !ok {
			return invalidf("Filter "+want, p.Name(), "filterpolicy.Decoder")
		}
	}
	if p := o.RangeFilter; p != nil && !slices.Contains(filterpolicy.RangeFamilies(), p.Name()) {
		if _, ok := p.(filterpolicy.RangeDecoder); !ok {
			return invalidf("RangeFilter "+want, p.Name(), "filterpolicy.RangeDecoder")
		}
	}
	return nil
}

// minCompactionRate is the lowest rate that may be asked for, in bytes per second: a
// lower one would not keep up with any writer.
const minCompactionRate = 64 << 10
