package kv

import (
	"cmp"
	"log/slog"
	"runtime"
	"time"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/budget"
	"github.com/siftkv/siftkv/internal/callback"
	"github.com/siftkv/siftkv/internal/filterbudget"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
)

// The defaults of PollInterval. A look at a directory where nothing has changed takes 25 microseconds.
const (
	localPollInterval   = 10 * time.Millisecond
	objectsPollInterval = time.Second
)

// maxMergerName bounds the name of a merger, in bytes.
const maxMergerName = 255

// withDefaults returns the options with every field set, or an error that names the wrong field.
func (o *Options) withDefaults() (Options, error) {
	var r Options
	if o != nil {
		r = *o
	}
	if err := r.MemoryBudget.check(&r); err != nil {
		return r, err
	}
	if r.Objects != nil {
		if r.objects = objectdir.OpsOf(r.Objects.Driver()); r.objects == nil {
			r.Objects = nil // it was a nil *objects.Config, on which no default may depend
		}
	}
	r.setMemory()
	r.setFiles()
	r.setCompactions()
	if r.Filter == nil {
		r.Filter = filterpolicy.Default()
	}
	if r.RangeFilter == nil {
		r.RangeFilter = filterbudget.NoRanges
	}
	if r.Clock == nil {
		r.Clock = time.Now
	}
	if r.Logger == nil {
		r.Logger = slog.New(slog.DiscardHandler)
	} else {
		r.Logger = callback.Logger(r.Logger)
	}
	r.harness.Backoff = cmp.Or(r.harness.Backoff, defaultBackoff)
	r.harness.MinStreamed = cmp.Or(r.harness.MinStreamed, minStreamed)
	if r.Objects != nil {
		r.PollInterval = cmp.Or(r.PollInterval, objectsPollInterval)
		r.harness.MaxManifestSize = cmp.Or(r.harness.MaxManifestSize, maxPublishedManifest)
	}
	r.PollInterval = cmp.Or(r.PollInterval, localPollInterval)
	r.harness.MaxManifestSize = cmp.Or(r.harness.MaxManifestSize, maxManifestSize)
	if err := r.check(); err != nil {
		return r, err
	}
	switch {
	case r.harness.FS != nil:
	case r.InMemory:
		r.harness.FS = vfs.NewMem()
	default:
		r.harness.FS = vfs.OSWithMode(r.FileMode)
	}
	return r, nil
}

// setMemory gives memtables, cache and files the sizes that a limit for all of them leaves, or else their own.
func (o *Options) setMemory() {
	o.MaxMemtables = cmp.Or(o.MaxMemtables, 3)
	if limit := o.MemoryLimit; limit > 0 {
		o.FalsePositiveMemory = cmp.Or(o.FalsePositiveMemory, budget.FalsePositives(limit))
		o.MemtableSize = cmp.Or(o.MemtableSize,
			min(max(limit/int64(max(8, 2*o.MaxMemtables)), budget.MinMemtable), 64<<20))
		o.CacheSize = cmp.Or(o.CacheSize, max(o.readersLimit(), 1))
		o.TargetFileSize = cmp.Or(o.TargetFileSize, min(max(limit/4, 4<<20), 32<<20))
	}
	if b := o.MemoryBudget; b != nil {
		o.FalsePositiveMemory = cmp.Or(o.FalsePositiveMemory, budget.FalsePositives(b.memory.Limit()))
		o.MemtableSize = cmp.Or(o.MemtableSize,
			min(max(b.memory.Memtables()/int64(o.MaxMemtables), budget.MinMemtable), 64<<20))
		o.CacheSize = cmp.Or(o.CacheSize, b.memory.ReadersLimit(true))
		o.TargetFileSize = cmp.Or(o.TargetFileSize, min(max(b.memory.Limit()/4, 4<<20), 32<<20))
	}
	o.FalsePositiveMemory = cmp.Or(o.FalsePositiveMemory, budget.DefaultFalsePositives)
	o.CacheSize = cmp.Or(o.CacheSize, 64<<20)
	o.MemtableSize = cmp.Or(o.MemtableSize, 32<<20)
}

// Defaults that tests change. docs/adr/0030 has the reasons for that of SeparateFrom, in bytes.
var (
	defaultSeparateFrom     = 4 << 10
	separateEverywhere      = false // what is read from maps or an object store too
	defaultSeparateAtCommit = false
	defaultIdleCompaction   = 10 * time.Second
)

// usualSeparateFrom returns the default of SeparateFrom: no value is separated where that makes reads dear.
func (o *Options) usualSeparateFrom() int {
	if (o.Objects != nil || o.MemoryMap && !o.SeparateAtCommit) && !separateEverywhere {
		return -1
	}
	return defaultSeparateFrom
}

// setFiles sets what files look like, and how many are open.
func (o *Options) setFiles() {
	o.FileMode = cmp.Or(o.FileMode, vfs.DefaultMode)
	o.MaxOpenFiles = cmp.Or(o.MaxOpenFiles, 1000)
	o.SeparateFrom = cmp.Or(o.SeparateFrom, o.usualSeparateFrom())
	if defaultSeparateAtCommit && o.Objects == nil {
		o.SeparateAtCommit = o.SeparateFrom > 0
	}
	o.BlockSize = cmp.Or(o.BlockSize, 4096)
	o.IndexPartition = cmp.Or(o.IndexPartition, 1<<20)
	o.Compression = cmp.Or(o.Compression, sstable.Snappy)
	for n, c := range o.LevelCompression {
		o.LevelCompression[n] = cmp.Or(c, o.Compression)
	}
	o.TargetFileSize = cmp.Or(o.TargetFileSize, 32<<20)
}

// setCompactions sets when compactions start, what they make, and how many run.
func (o *Options) setCompactions() {
	o.BaseLevelSize = cmp.Or(o.BaseLevelSize, max(64<<20, o.TargetFileSize))
	o.SpaceAmplification = cmp.Or(o.SpaceAmplification, 1.3)
	o.BlobSpace = cmp.Or(o.BlobSpace, 1.5)
	o.L0CompactionThreshold = cmp.Or(o.L0CompactionThreshold, 4)
	o.L0SlowdownThreshold = cmp.Or(o.L0SlowdownThreshold, max(12, o.L0CompactionThreshold))
	o.L0StopThreshold = cmp.Or(o.L0StopThreshold, max(36, 2*o.L0SlowdownThreshold))
	o.RunsPerLevel = cmp.Or(o.RunsPerLevel, 4)
	o.IdleCompaction = cmp.Or(o.IdleCompaction, defaultIdleCompaction)
	if o.Objects != nil || o.InMemory || o.Compaction != Leveled {
		o.IdleCompaction = -1 // never
	}
	o.MaxSlotBytes = cmp.Or(o.MaxSlotBytes, 1<<30)
	leastThreads := 1
	if o.Compaction != Leveled {
		leastThreads = 2
	}
	threads := runtime.GOMAXPROCS(0) / 2
	if o.MemoryLimit > 0 {
		threads = int(min(int64(threads), o.MemoryLimit/budget.ThreadMemory))
	}
	if o.MemoryBudget != nil {
		threads = o.MemoryBudget.memory.Threads()
	}
	o.MaxConcurrentCompactions = cmp.Or(o.MaxConcurrentCompactions, max(threads, leastThreads))
}
