package kv

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"time"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/commit"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
)

// Options are the settings of a store. The zero value of each field means its
// default, and a nil *Options is all defaults. Settings may change from one Open
// to the next: files keep what they were written with.
type Options struct {
	// MemoryLimit bounds, in bytes, the memory of memtables, block cache,
	// filters and indexes together: at least 4 MiB. It sets the defaults of
	// MemtableSize (an eighth, less if MaxMemtables is above 4, 64 MiB at the most)
	// and CacheSize (what is left),
	// and the cache gives way as filters and indexes grow. Filters that would
	// take more than half of the limit are left on disk; they are counted in
	// Metrics. The default is no common limit: the parts are bounded one by one,
	// filters and indexes by the size of the data. Not counted are range
	// tombstones, buffers of reads that are under way, and what a single batch
	// larger than a memtable takes beyond one.
	MemoryLimit int64

	// CacheSize is the size of the block cache in bytes: 64 MiB by default,
	// negative for none. It holds data blocks and the leaves of large indexes.
	CacheSize int64

	// MemtableSize is the size in bytes at which a memtable is flushed, its index
	// (a seventeenth) included: 32 MiB by default, 64 KiB to 1 GiB. Up to MaxMemtables
	// exist at a time.
	MemtableSize int64

	// MaxMemtables is how many memtables, the active one included, may exist
	// before writes wait for a flush: 3 by default, at least 2.
	MaxMemtables int

	// BlockSize is the size of a data block in bytes before compression: 4096 by
	// default, 64 to 1 MiB, and an eighth of CacheSize at the most, so that the cache can
	// keep blocks; without a cache, to 64 MiB. An entry that is larger gets a block of
	// its own. Blocks of more than a quarter of CacheSize or 2 MiB are never cached.
	BlockSize int

	// IndexPartition is the size in bytes from which on the index of a file is cut
	// into leaves of about 16 KiB, or of that size if it is less, which are read on demand
	// and cached, under a top that stays in memory: 1 MiB by default, 64 to 1 GiB. Less
	// saves memory and costs each lookup a leaf.
	IndexPartition int

	// Compression of data blocks: Snappy by default.
	Compression sstable.Compression

	// LevelCompression, where it is set, is the compression of a level's files in place
	// of Compression: young levels without and the last with zstd, say. Files that go
	// from one level to another with a different compression are always rewritten.
	LevelCompression [NumLevels]sstable.Compression

	// MaxOpenFiles bounds the sorted files that are open at the same time: 1,000 by default,
	// at least 4. Their filters and indexes stay in memory; one whose blocks are not read for
	// long is closed, and opened again when a block of it is. A few more are open while they
	// are all being read. (Files that are mapped, see MemoryMap, need not stay open.) The
	// store's log, manifest and lock, and what flushes and compactions write, come on top: a
	// dozen or so. A view of OpenReadOnly in a directory where it may not write keeps all
	// its files open.
	MaxOpenFiles int

	// MemoryMap reads sorted files without compression where the system has them in
	// memory, past the block cache. That is faster where the cache is smaller than the
	// data, but weaker: a block's checksum is verified when it is first read, and not
	// when the system reads it again; and a page that is not in memory stops a thread
	// of the program, which other goroutines then lack. What cannot be read is an error
	// as ever. It has no effect on 32-bit platforms and Windows.
	MemoryMap bool

	// Filter is the policy of new files' filters: "blocked:10" by default.
	// Files written under another policy keep theirs. One of the application's own is
	// a filterpolicy.Decoder.
	Filter filterpolicy.Policy

	// FilterBudget is the size in bytes that the filters of all files together
	// should have. It is shared among the levels so that a lookup of an absent key
	// reads least (filterpolicy.Spread): young files get more bits per key than
	// Filter says, the last level fewer. Filter then gives the family. Shares follow
	// the levels' sizes as files are written. The default is no budget: every file
	// gets what Filter says.
	FilterBudget int64

	// Prefix, if set, puts the prefixes of keys into the filters of new files beside
	// the keys. An iterator whose bounds lie within one prefix then passes over
	// files that hold no key of it. Files written under another extractor, or none,
	// are not asked. See filterpolicy.ParsePrefix.
	Prefix filterpolicy.Prefix

	// PrefixOnly keeps the keys themselves out of new files' filters: they are
	// smaller, and a lookup is spared a read only if no key of its prefix is there.
	PrefixOnly bool

	// TargetFileSize is the size of a sorted file in bytes: 32 MiB by default, at
	// least 16 KiB.
	TargetFileSize int64

	// BaseLevelSize is the size in bytes that the first level below level 0 may
	// reach: 64 MiB by default, at least TargetFileSize. Each level below may be ten
	// times larger than the one above.
	BaseLevelSize int64

	// L0CompactionThreshold is how many files of level 0 start a compaction: 4 by
	// default. Writes slow down from L0SlowdownThreshold files on (12 by
	// default), more with every file, and wait at L0StopThreshold (36).
	L0CompactionThreshold int
	L0SlowdownThreshold   int
	L0StopThreshold       int

	// Compaction says how many sorted runs levels have: Leveled by default. It may
	// change from one Open to the next: compactions then bring the store from one
	// shape into the other. A leveled store that was tiered merges the runs of each
	// level first, and holds up writes if they are faster than that.
	Compaction CompactionStyle

	// RunsPerLevel is how many sorted runs a level of a Tiered or LazyLeveled store may
	// have before they are merged into the level below: 4 by default, 2 to 64. More
	// make writes cheaper, and reads and space dearer. (Level 0 has
	// L0CompactionThreshold.) The runs above the oldest have at most RunsPerLevel times
	// its size, level 0 not counted.
	RunsPerLevel int

	// MaxConcurrentCompactions bounds the threads that compact in the background (Compact
	// runs in its caller's goroutine, beside them): half of GOMAXPROCS by default, at
	// least 1, and at least 2 in a Tiered or LazyLeveled store, where one keeps level 0
	// short while another merges large runs. Flushes have a thread of their own.
	MaxConcurrentCompactions int

	// CompactionRate bounds what compactions, those of Compact included, write, in bytes
	// per second: no bound by default, else at least 64 KiB. Flushes take their share
	// and never wait for it, and nor do compactions while writers are slowed down by
	// level 0.
	CompactionRate int64

	// Merger combines the operands of Merge. The default is none, and then Merge
	// returns ErrNoMerger. The store keeps its name: while there are operands, an open
	// with a merger of another name is refused with ErrInvalidOptions. One with none is
	// not. If the name is that of a merger of this package, that one is used; else
	// operands are kept as they are, and lookups of their keys, and iterators that come
	// to them, return ErrNoMerger. Which of them exist can be seen in Metrics; Compact
	// makes values of all that no snapshot needs, and the next Open then takes any
	// merger.
	Merger Merger

	// Clock says when values written by SetTTL end: time.Now by default. It is called
	// by several goroutines at once, and with locks held: it must not call the store.
	Clock func() time.Time

	// ReadOnly opens a store that exists and changes nothing on disk. Several
	// read-only stores may share a directory, but none with a writer: OpenReadOnly
	// reads beside one.
	ReadOnly bool

	// RecoveryMode says what Open makes of logs that a crash or damage has left
	// broken: PointInTime by default. OpenReadOnly knows no other.
	RecoveryMode RecoveryMode

	// InMemory keeps everything in memory; the directory's name means nothing.
	// For tests.
	InMemory bool

	// Logger receives what the store does in the background. The default is
	// silence.
	Logger *slog.Logger

	// Events are called when something happens in the background.
	Events Events

	// TraceOpens keeps the stack that opened each iterator, snapshot and transaction,
	// for the error of Close. Keeping it takes longer than opening does: it is for
	// tests, and for looking for leaks.
	TraceOpens bool

	// Tests set these, those of other packages by harness.Apply.
	fs              vfs.FS
	backoff         backoff // between attempts to resume, and after failed compactions
	maxManifestSize int64
}

func init() {
	harness.Apply = func(options any, h harness.Harness) {
		o := options.(*Options)
		o.fs, o.backoff, o.maxManifestSize = h.FS, backoff{h.FirstRetry, h.LastRetry}, h.MaxManifestSize
	}
}

// maxMergerName bounds the name of a merger, in bytes.
const maxMergerName = 255

// minMemoryLimit leaves room for three small memtables, a cache and a few files.
const minMemoryLimit = 4 << 20

// withDefaults returns the options with every field set, or an error that names
// the field that is wrong.
func (o *Options) withDefaults() (Options, error) {
	var r Options
	if o != nil {
		r = *o
	}
	r.MaxMemtables = cmp.Or(r.MaxMemtables, 3)
	if r.MemoryLimit > 0 {
		r.MemtableSize = cmp.Or(r.MemtableSize, min(max(r.MemoryLimit/int64(max(8, 2*r.MaxMemtables)), 64<<10), 64<<20))
		r.CacheSize = cmp.Or(r.CacheSize, max(r.MemoryLimit-int64(r.MaxMemtables)*r.MemtableSize, 1))
	}
	r.CacheSize = cmp.Or(r.CacheSize, 64<<20)
	r.MaxOpenFiles = cmp.Or(r.MaxOpenFiles, 1000)
	r.MemtableSize = cmp.Or(r.MemtableSize, 32<<20)
	r.BlockSize = cmp.Or(r.BlockSize, 4096)
	r.IndexPartition = cmp.Or(r.IndexPartition, 1<<20)
	r.Compression = cmp.Or(r.Compression, sstable.Snappy)
	for n, c := range r.LevelCompression {
		r.LevelCompression[n] = cmp.Or(c, r.Compression)
	}
	r.TargetFileSize = cmp.Or(r.TargetFileSize, 32<<20)
	r.BaseLevelSize = cmp.Or(r.BaseLevelSize, max(64<<20, r.TargetFileSize))
	r.L0CompactionThreshold = cmp.Or(r.L0CompactionThreshold, 4)
	r.L0SlowdownThreshold = cmp.Or(r.L0SlowdownThreshold, max(12, r.L0CompactionThreshold))
	r.L0StopThreshold = cmp.Or(r.L0StopThreshold, max(36, 2*r.L0SlowdownThreshold))
	leastThreads := 1
	if r.Compaction != Leveled {
		leastThreads = 2
	}
	r.RunsPerLevel = cmp.Or(r.RunsPerLevel, 4)
	r.MaxConcurrentCompactions = cmp.Or(r.MaxConcurrentCompactions, max(runtime.GOMAXPROCS(0)/2, leastThreads))
	if r.Filter == nil {
		p, err := filterpolicy.Parse("blocked:10")
		if err != nil {
			return r, err
		}
		r.Filter = p
	}
	if r.Clock == nil {
		r.Clock = time.Now
	}
	if r.Logger == nil {
		r.Logger = slog.New(slog.DiscardHandler)
	}
	r.backoff = cmp.Or(r.backoff, defaultBackoff)
	r.maxManifestSize = cmp.Or(r.maxManifestSize, maxManifestSize)
	if r.fs == nil {
		r.fs = vfs.OS
		if r.InMemory {
			r.fs = vfs.NewMem()
		}
	}
	return r, r.check()
}

// check holds every field against its bounds.
func (o *Options) check() error {
	bounds := []struct {
		name        string
		value       int64
		least, most int64
		unit        string
	}{
		{"MemtableSize", o.MemtableSize, 64 << 10, 1 << 30, " bytes"},
		{"MaxMemtables", int64(o.MaxMemtables), 2, 64, ""},
		{"MaxOpenFiles", int64(o.MaxOpenFiles), 4, 1 << 30, " files"},
		{"BlockSize", int64(o.BlockSize), 64, 64 << 20, " bytes"},
		{"IndexPartition", int64(o.IndexPartition), 64, 1 << 30, " bytes"},
		{"TargetFileSize", o.TargetFileSize, 16 << 10, 1 << 40, " bytes"},
		{"BaseLevelSize", o.BaseLevelSize, o.TargetFileSize, 1 << 50, " bytes (TargetFileSize or more)"},
		{"L0CompactionThreshold", int64(o.L0CompactionThreshold), 1, 1000, " files"},
		{"L0SlowdownThreshold", int64(o.L0SlowdownThreshold), int64(o.L0CompactionThreshold), 10_000,
			" files (L0CompactionThreshold or more)"},
		{"L0StopThreshold", int64(o.L0StopThreshold), int64(o.L0SlowdownThreshold) + 1, 100_000,
			" files (more than L0SlowdownThreshold)"},
		{"RunsPerLevel", int64(o.RunsPerLevel), 2, 64, ""},
		{"MaxConcurrentCompactions", int64(o.MaxConcurrentCompactions), 1, 1024, ""},
	}
	if o.MemoryLimit != 0 {
		bounds = append(bounds, struct {
			name        string
			value       int64
			least, most int64
			unit        string
		}{"MemoryLimit", o.MemoryLimit, max(minMemoryLimit, int64(o.MaxMemtables+1)*o.MemtableSize), math.MaxInt64,
			" bytes (MaxMemtables of MemtableSize, and one more)"})
	}
	for _, b := range bounds {
		if b.value < b.least || b.value > b.most {
			return fmt.Errorf("%w: %s is %d: want %d to %d%s", ErrInvalidOptions, b.name, b.value, b.least, b.most,
				b.unit)
		}
	}
	if err := o.checkBlocksFit(); err != nil {
		return err
	}
	if o.FilterBudget < 0 {
		return fmt.Errorf("%w: FilterBudget is %d: want a number of bytes, or 0 for none", ErrInvalidOptions,
			o.FilterBudget)
	}
	if o.Merger != nil && (o.Merger.Name() == "" || len(o.Merger.Name()) > maxMergerName) {
		return fmt.Errorf("%w: the name of Merger has %d bytes: want 1 to %d", ErrInvalidOptions,
			len(o.Merger.Name()), maxMergerName)
	}
	if o.PrefixOnly && o.Prefix == nil {
		return fmt.Errorf("%w: PrefixOnly is set and Prefix is not", ErrInvalidOptions)
	}
	if o.RecoveryMode >= numRecoveryModes {
		return fmt.Errorf("%w: RecoveryMode is %d: want PointInTime, TolerateTornTail, Absolute or SkipCorrupt",
			ErrInvalidOptions, o.RecoveryMode)
	}
	if o.Compaction >= numCompactions {
		return fmt.Errorf("%w: Compaction is %d: want Leveled, Tiered or LazyLeveled", ErrInvalidOptions, o.Compaction)
	}
	if o.CompactionRate != 0 && o.CompactionRate < minCompactionRate {
		return fmt.Errorf("%w: CompactionRate is %d: want %d bytes per second or more, or 0 for no bound",
			ErrInvalidOptions, o.CompactionRate, minCompactionRate)
	}
	if !o.Compression.Valid() {
		return fmt.Errorf("%w: Compression is %d: want sstable.NoCompression, Snappy or Zstd", ErrInvalidOptions,
			o.Compression)
	}
	for n, c := range o.LevelCompression {
		if !c.Valid() {
			return fmt.Errorf("%w: LevelCompression[%d] is %d: want sstable.NoCompression, Snappy or Zstd",
				ErrInvalidOptions, n, c)
		}
	}
	return nil
}

// WriteOptions say when a write is durable. Use Sync, NoSync or Async; nil
// means Sync.
type WriteOptions struct{ durability commit.Level }

// The three levels of durability. Whatever the level, what survives a crash is
// always a prefix of the writes: never a hole, never half a batch.
var (
	// Sync returns when the write is on stable storage: it survives a loss of
	// power.
	Sync = &WriteOptions{commit.Synced}
	// NoSync returns when the operating system has the write: it survives a
	// crash of the process, but may be lost with the machine.
	NoSync = &WriteOptions{commit.Written}
	// Async returns when the write is in memory, and hands it to the operating
	// system soon: it may be lost with the process. For bulk loads.
	Async = &WriteOptions{commit.Buffered}
)

func (o *WriteOptions) level() commit.Level {
	if o == nil {
		return commit.Synced
	}
	return o.durability
}

// IterOptions bound an iterator.
type IterOptions struct {
	// LowerBound is the smallest key that the iterator may reach; UpperBound is
	// the smallest that it may not. Nil: no bound. Both are copied.
	LowerBound, UpperBound []byte
}
