package kv

import (
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/filterbudget"
	"github.com/siftkv/siftkv/internal/version"
)

var styles = [numCompactions]compaction.Style{
	Leveled: compaction.Leveled, Tiered: compaction.Tiered, LazyLeveled: compaction.LazyLeveled,
}

// compaction returns the options on which the choice of compactions depends.
func (o *Options) compaction() *compaction.Options {
	return &compaction.Options{
		Style:                    styles[o.Compaction],
		RunsPerLevel:             o.RunsPerLevel,
		SpaceAmplification:       o.SpaceAmplification,
		L0CompactionThreshold:    o.L0CompactionThreshold,
		L0SlowdownThreshold:      o.L0SlowdownThreshold,
		L0StopThreshold:          o.L0StopThreshold,
		MaxConcurrentCompactions: o.MaxConcurrentCompactions,
		MemtableSize:             o.MemtableSize,
		BaseLevelSize:            o.BaseLevelSize,
		TargetFileSize:           o.TargetFileSize,
		BlobSpaceLimit:           o.BlobSpace,
		BlobFileSize:             o.blobSize,
		RangeSize:                o.rangeSize,
		Compression:              o.LevelCompression,
	}
}

// filterPlan returns what the options say of filters.
func (o *Options) filterPlan() *filterbudget.Plan {
	p := &filterbudget.Plan{Point: o.Filter, Ranges: o.RangeFilter, RangesOfLast: o.RangeFilterLastLevel,
		Budget: o.FilterBudget}
	if o.Compaction != Leveled {
		p.RunsPerLevel = o.RunsPerLevel
	}
	return p
}

// compactionInput returns what the choice of a compaction of a version depends on. The caller holds d.mu, and has
// called askClock before.
func (d *DB) compactionInput(v *version.Version) *compaction.Input {
	oldest, held := d.snapshots.oldest()
	if !held {
		oldest = base.MaxSeqNum
	}
	return &compaction.Input{
		Options:        *d.opts.compaction(),
		Version:        v,
		Now:            d.told.time(),
		OldestSnapshot: oldest,
		Disk:           d.space.known(&d.history),
		BusyThreads:    d.compactions.busyThreads(),
		State:          &d.compactions.State,
	}
}

// blobSpace returns what the blob files of a version take. The caller holds d.mu.
func (d *DB) blobSpace(v *version.Version) compaction.BlobSpace {
	return d.compactionInput(v).BlobSpace()
}

// compactionDebt returns Metrics.CompactionDebt of a version.
func (d *DB) compactionDebt(v *version.Version) int64 {
	d.askClock()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.compactionInput(v).Debt()
}
