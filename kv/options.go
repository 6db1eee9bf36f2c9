package kv

import (
	"io/fs"
	"log/slog"
	"time"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/commit"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/sstable"
)

// Options are the settings of a store. The zero value of each field means its default, and a nil
// *Options is all defaults. Settings may change from one Open to the next: files keep what they
// were written with. ParseOptions and String read and write them as text. The file SIFTKV-OPTIONS
// in the store's directory has the text of those that the store was last opened with for writing.
type Options struct {
	// MemoryLimit bounds the memory of the store, in bytes: at least 4 MiB. At its peak the process takes at most 1.25
	// times as much plus 24 MiB, the code of a small program included, and what the program itself uses. Memtables,
	// block cache, filters, indexes and the buffers of flushes and compactions (an eighth, at most 16 MiB) share it. It
	// sets the defaults of MemtableSize (an eighth, less if MaxMemtables is above 4, at most 64 MiB), of CacheSize (the
	// rest), of TargetFileSize and of MaxConcurrentCompactions. The cache shrinks as filters and indexes grow. Filters
	// may have half of what memtables and buffers leave. If there are more, those are in memory that save most reads
	// per byte, and the others' files are read as if they had none. Files that are not read give their indexes up once
	// all indexes take a quarter. Those of files that are read stay, and new ones are partitioned (see IndexPartition).
	// Metrics says how many filters there is no room for. By default there is no common limit: each part has its own,
	// and filters and indexes grow with the data. Range tombstones count as what holds them. On an object store, what
	// iterators prefetch takes an eighth of it (64 MiB at most). The limit does not count compactions beyond two at a
	// time, flushed memtables that open iterators keep, logs that Open replays, and what a large batch takes beyond one
	// memtable.
	MemoryLimit int64

	// MemoryBudget, unless nil, is a bound of memory that the store shares with the others that are opened with it, in
	// place of a MemoryLimit: see there. MemtableSize is then the maximum of a memtable (64 MiB by default), and
	// CacheSize is not set, or negative for a store that caches no blocks. Open fails with ErrMemoryBudget if the
	// stores are too many for it.
	MemoryBudget *MemoryBudget

	// CacheSize is the size of the block cache in bytes: 64 MiB by default, no cache if
	// negative. The cache holds data blocks and the leaves of large indexes.
	CacheSize int64

	// MemtableSize is the size in bytes at which a memtable is flushed, including its index (a seventeenth): 32 MiB by
	// default, 64 KiB to 1 GiB. At most MaxMemtables exist at a time.
	MemtableSize int64

	// MaxMemtables is how many memtables may exist, including the active one, before
	// writes wait for a flush: 3 by default, at least 2.
	MaxMemtables int

	// BlockSize is the size of a data block in bytes before compression: 4096 by default, 64 to 1 MiB. It is at most an
	// eighth of CacheSize, so that the cache can keep blocks; without a cache, up to 64 MiB. A larger entry gets a
	// block of its own. Blocks larger than a quarter of CacheSize, or than 2 MiB, are never cached.
	BlockSize int

	// IndexPartition is the size in bytes at which the index of a file is cut into leaves: 1 MiB by default, 64 to 1
	// GiB. Leaves have about 16 KiB, or IndexPartition bytes if that is less; they are read on demand and cached, and
	// the top of the index stays in memory. A smaller value saves memory and costs each lookup a leaf.
	IndexPartition int

	// Compression of data blocks: Snappy by default.
	Compression sstable.Compression

	// LevelCompression is the compression of each level's files, in place of Compression
	// where it is set: none for young levels and zstd for the last, say. A file that goes
	// to a level with a different compression is always rewritten.
	LevelCompression [NumLevels]sstable.Compression

	// SeparateFrom is the minimum length in bytes of a value that is stored in a blob file. It is written once, while
	// its key and a handle of it go through compactions. Reading such a value takes one more read. Values up to 64 KiB
	// that are asked for again come out of the cache, and iterators and MultiGet read neighbours together. Has,
	// GetSize and iterators with KeysOnly read no blob file.
	//
	// 0 is the default: 4 KiB, or -1 with Objects, where a read is a request, and with MemoryMap, which maps no blob
	// files, unless SeparateAtCommit is set. A negative value stops separation: existing blob values stay in blob
	// files, and Set, flushes and compactions put no value there. SetReader does for values of at least 256 KiB,
	// whatever SeparateFrom is, except in an object store. Operands of a merger stay in sorted files. It may be
	// changed at every open. Releases that know no blob files refuse a store once there is one. See BlobSpace, and
	// docs/large-values.md.
	SeparateFrom int

	// BlobSpace bounds the size of blob files, as a multiple of the values that are needed, about: 1.5 by default, 1.1
	// to 1,000. To free the space of overwritten and deleted values, the rest of their files is copied, the emptiest
	// files first. With values that are overwritten evenly each is written 2.4 times in all for 1.3, and 1.7 times for
	// 1.5. Needed is what is live, and what snapshots and iterators still see. Writes are delayed when the limit is
	// exceeded by half of what a batch of blob GC or two memtables take. They wait at twice that, unless waiting frees
	// nothing. While files are collected, a batch of new files comes on top, and small stores may have a few files
	// more. On a disk that is nearly full the limit is less.
	BlobSpace float64

	// SeparateAtCommit has values of at least SeparateFrom bytes written once, when they are committed. They go to a
	// blob file next to the log, and log and memtable have handles. Without it they go to the log, and to a blob file
	// when memtables are flushed. With it they are not compressed, and are in the order of commits, not of keys, until
	// a compaction moves them. A sync of the log syncs two files, side by side. It does not go with a negative
	// SeparateFrom, nor with Objects. It may be changed at every open.
	SeparateAtCommit bool

	// MaxOpenFiles bounds the sorted files and blob files that are open at the same time: 1,000 by default, at least
	// 4. The store closes a file whose blocks have not been read for long, and opens it again to read one; its filter
	// and index stay in memory. A few more files are open while they are all being read. Mapped files (see MemoryMap)
	// need not stay open. The log, the manifest, the lock and the files that flushes and compactions write come on
	// top: a dozen or so, and one for each SetReader under way. A view made by OpenReadOnly in a directory where it
	// may not write keeps all its files open.
	MaxOpenFiles int

	// MemoryMap maps sorted files without compression into memory, and reads them there and not through the block
	// cache. That is faster if the cache is smaller than the data, but weaker. A block's checksum is verified when
	// the block is first read, and not when the system reads it again. A page that is not in memory blocks a thread
	// of the program, which other goroutines then lack. A failed read is an error, as without MemoryMap. It has no
	// effect on 32-bit platforms and Windows.
	MemoryMap bool

	// Filter is the policy of new files' filters: "blocked:10" by default. Files written
	// under another policy keep their filters. A policy of the application's own must be
	// a filterpolicy.Decoder, or Open fails with ErrInvalidOptions. If a function of it panics or calls runtime.Goexit,
	// a flush or compaction fails and is tried again, and a lookup passes that on to its caller.
	Filter filterpolicy.Policy

	// FilterBudget is the size in bytes that the filters of all files should have together. The store divides it among
	// the levels so that a lookup of an absent key reads least (filterpolicy.Spread). Young files get more bits per key
	// than Filter says, the last level fewer. Filter gives the family only; a policy of the application's own keeps its
	// size. Shares follow the levels' sizes as files are written; level 0 comes on top. By default there is none.
	FilterBudget int64

	// FalsePositiveMemory is the size in bytes of the memory of false positives: keys that a filter let pass and that
	// their file did not have. While one is remembered, a lookup of it does not read that file again. So an absent key
	// that is asked for often costs its blocks once, whatever filters say of it. metrics.Lookups.FilterRemembered
	// counts such lookups. There is a slot for every 16 bytes, and each key that is remembered takes 80 bytes more:
	// six times this size in all, at the most. Nothing is taken before there is something to remember. If the slots of
	// keys are taken, the keys that repeat stay. Keys above 64 bytes are not remembered, nor is anything beyond Close.
	// Found keys pay one load from memory. 256 KiB by default, or a 1024th of MemoryLimit if that is less; 128 bytes
	// to 1 GiB; negative: none. With MemoryLimit all of it is within that limit. The stores of a MemoryBudget share
	// one, of a 1024th of it, 256 KiB at the most: then it is not set, or negative.
	FalsePositiveMemory int64

	// Prefix, if set, adds the prefixes of keys to the filters of new files. An iterator whose bounds lie within one
	// prefix then skips files that hold no key with it. The filters of files written with another extractor, or none,
	// are not used for that. See filterpolicy.ParsePrefix. Panics are as those of Filter.
	Prefix filterpolicy.Prefix

	// PrefixOnly keeps the keys themselves out of new files' filters. The filters are
	// smaller, and save a lookup a read only if the file has no key with its prefix.
	PrefixOnly bool

	// RangeFilter is the policy of new files' range filters, which tell an iterator with bounds that a file has no key
	// between them: it is then not read. See filterpolicy.ParseRange. "cut:6" takes 13 bits per key of random keys, 17
	// to 22 of names, and 35 of paths of 77 bytes. By default there are none. They pay where scans mostly find nothing
	// in most files: with 16 young files such scans read a fraction of a block in place of 16 blocks. Otherwise they
	// cost 0.2 to 0.4 µs per file and scan (3.4 µs for such paths), and half of a compaction's time again
	// (docs/adr/0026). metrics.Level.Scan tells which a store is. The last level's files have none unless
	// RangeFilterLastLevel is set: most scans find something there, and it has most of the keys. An iterator asks at
	// each seek, for the keys from where it seeks to its upper bound or, backward, down to its lower one. An iterator
	// without that bound asks nothing. Files written under another policy keep their range filters. A policy of the
	// application's own must be a filterpolicy.RangeDecoder, or Open fails. Panics are as those of Filter.
	RangeFilter filterpolicy.RangePolicy

	// RangeFilterLastLevel gives the files of the last level range filters too, for stores whose scans
	// mostly find nothing at all.
	RangeFilterLastLevel bool

	// TargetFileSize is the size of a sorted file in bytes, at least 16 KiB. The default is 32 MiB, or a quarter of
	// MemoryLimit if that is less (but 4 MiB). Files of the last level may have twice that, and those of a level with
	// few of them an eighth. A file's filter is made in memory, of eight bytes or more for each of its keys.
	TargetFileSize int64

	// BaseLevelSize is the size in bytes that the first level below level 0 may always
	// have: 64 MiB by default, at least TargetFileSize. Each level below may be ten times
	// larger than the one above; for the last one see SpaceAmplification.
	BaseLevelSize int64

	// SpaceAmplification bounds the size of a Leveled store's files, as a multiple of the live bytes, about, when
	// keys are overwritten evenly: 1.3 by default, 1.1 to 2. The more, the less is written: the last level is
	// rewritten about 1 / (SpaceAmplification - 1) times for what comes into it. A store of less than about ten
	// memtables takes more space for a while, and a compaction has its input and its output at the same time.
	SpaceAmplification float64

	// L0CompactionThreshold is how many sorted runs in level 0 start a compaction: 4 by default. A flush is one, in
	// however many files. A Leveled store of two levels waits for half as many more if they are small: see
	// SpaceAmplification. At L0SlowdownThreshold runs (12 by default) writes are delayed, longer with every further
	// run. At L0StopThreshold (36) they wait.
	L0CompactionThreshold int
	L0SlowdownThreshold   int
	L0StopThreshold       int

	// Compaction says how many sorted runs levels have: Leveled by default. It may change from one Open to the next:
	// compactions then bring the store from one shape into the other. A leveled store that was tiered first merges
	// the runs of each level, and holds up writes that are faster than that.
	Compaction CompactionStyle

	// RunsPerLevel is how many sorted runs a level of a Tiered or LazyLeveled store may have, 4 by default, 2 to 64.
	// Then they are merged into the level below. More runs make writes cheaper, and reads and space dearer. (Level 0
	// has L0CompactionThreshold.) All runs but the oldest and level 0 together have at most RunsPerLevel times the
	// size of the oldest.
	RunsPerLevel int

	// MaxConcurrentCompactions bounds the threads that compact in the background. The default is half of GOMAXPROCS,
	// or one for each 16 MiB of MemoryLimit if that is less, but at least 1. In a Tiered or LazyLeveled store it is
	// at least 2: one keeps level 0 short while another merges large runs. Threads that would be idle merge ranges of
	// a compaction that runs, up to GOMAXPROCS of them. Compact runs in its caller's goroutine, and all of these
	// threads except one help it. Flushes have a thread of their own, and those that would be idle help one of 16 MiB
	// or more. It then writes several files, which are one sorted run.
	MaxConcurrentCompactions int

	// CompactionRate bounds what compactions write, those of Compact too, in bytes per second: no bound by default,
	// else at least 64 KiB. Flushes count and never wait for it, nor do compactions while level 0 delays writes.
	CompactionRate int64

	// IdleCompaction is how long nothing must have been flushed or ingested until a Leveled store on a disk merges runs
	// that only make reads dearer. The default is 10 seconds; negative: never. It is four times the usual time between
	// two flushes, but at most four minutes, if that is more. The store rewrites 9/8 of the bytes, level 0 aside, that
	// it has flushed since Open, and up to its size more, once reads of such runs have cost twice what a merge does.
	IdleCompaction time.Duration

	// MaxSlotBytes bounds what is kept for slots, in bytes of logs and ingested files, and MaxSlotAge how long it is
	// kept after its writes are in tables. A slot that needs more is lost: see DB.CreateSlot. The defaults are 1 GiB,
	// and no bound of age.
	MaxSlotBytes int64
	MaxSlotAge   time.Duration

	// Merger combines the operands of Merge. The default is none, and then Merge returns ErrNoMerger. The store keeps
	// the merger's name: while it holds operands, Open with a merger of another name fails with ErrInvalidOptions.
	// Open without a merger does not. If the name is that of a merger of this package, that one is used. Else
	// operands stay as they are, and lookups of their keys, and iterators that reach them, return ErrNoMerger.
	// Metrics counts the operands of each level. Compact turns all operands that no snapshot needs into values, and
	// the next Open then takes any merger.
	Merger Merger

	// Clock tells the time for values written by SetTTL: time.Now by default. Several
	// goroutines call it at once. It must not call the store. A panic in SetTTL or in a read passes on to the caller.
	// In a flush, a compaction or the choice of one, it is an error of that, or the time that Clock told before stands.
	Clock func() time.Time

	// ReadOnly opens an existing store and changes nothing on disk. Several read-only stores may share a directory,
	// but not with a writer: OpenReadOnly reads while one writes.
	ReadOnly bool

	// RecoveryMode says what Open makes of logs that a crash has cut short or that are
	// damaged: PointInTime by default, and always for OpenReadOnly.
	RecoveryMode RecoveryMode

	// TolerateMissingValues has Open take a store whose blob files are missing, or have another size than the manifest
	// says. Without it Open refuses the store and names the files. Each is reported to the log and to
	// Events.Quarantined. The values in these files are lost. Their keys stay: a read of such a value fails with an
	// error that matches ErrCorruption, and so does one of operands of Merge over it. No read returns an older value
	// in its place. All other values can be read, and every key can be written and deleted. Missing sorted files and
	// logs are still errors of Open.
	TolerateMissingValues bool

	// InMemory keeps everything in memory and ignores the directory's name. For tests.
	InMemory bool

	// FileMode is the mode of files that the store makes, on the local disk: 0600 by default, so that only their owner
	// reads them. It has permissions only, and those of the owner to read and write. Directories have that of files,
	// and x where that has r: 0640 gives 0750. The umask of the process is taken off. Files that are there keep their
	// modes, as do those that Ingest and Checkpoint link. A reader of OpenReadOnly that another user runs needs r for
	// it, of the group say; without w for the directory it cannot register. Windows has no such modes.
	FileMode fs.FileMode

	// PollInterval is how often WaitForChange looks: every 10 ms by default, and every second in an
	// object store. There a look is a GET: 2.6 million in a month, about one dollar.
	PollInterval time.Duration

	// Objects, unless nil, has the store live in an object store, whatever the directory's name. It is an
	// *objects.Config: package kv/objects has the settings, and links what a store in an object store needs.
	Objects objectdir.Settings

	// Logger receives messages about background work. By default there are none. Its handler is called on a goroutine
	// of its own, for which the store waits, with locks held: it must not call the store. A message is lost if the
	// handler panics or calls runtime.Goexit.
	Logger *slog.Logger

	// Events are called when something happens in the background.
	Events Events

	// LatencyHistograms has lookups, writes, syncs, flushes and stalls timed, for Metrics.Latency. It
	// costs up to 25 ns for a lookup or a write, and 200 KiB of memory.
	LatencyHistograms bool

	// LookupSample is how many bytes of memory the store uses for a sample of its lookups and scans, which kv/advice
	// reads. It is none by default, else 64 KiB to 1 GiB. 1 MiB has up to 11,000 lookups or some 680 scans, of which
	// advice needs 1,000 together. A key of more than a twentieth of it is left out. It comes on top of a MemoryLimit.
	// A lookup takes no more than a hundredth longer on average. The sample has whole keys, a share of those that are
	// looked up, the present and the absent. They are in memory only: no file has them, nor do Metrics and logs, and
	// Close gives them up.
	LookupSample int64

	// TraceOpens keeps the stack that opened each iterator, snapshot, transaction and reader of a value, for
	// the error of Close. That takes longer than opening them: it is for tests, and for finding leaks.
	TraceOpens bool

	stored  string         // text of the options file, once the options are complete
	objects *objectdir.Ops // of Objects, once the options are complete; nil: there are none

	harness harness.Harness // for tests; in the options of an open store, FS, Backoff and sizes are what it uses
}

// Small returns options for some hundred megabytes at most: memtables of 2 MiB, and a cache of up to 22 MiB.
func Small() *Options { return &Options{MemoryLimit: 32 << 20, MemtableSize: 2 << 20} }

func init() {
	harness.Of = func(options any) *harness.Harness { return &options.(*Options).harness }
	harness.SeparateByDefault = func(from int, atCommit bool) {
		separateEverywhere, defaultSeparateFrom, defaultSeparateAtCommit = true, from, atCommit
	}
	harness.NoIdleJobs = func() { defaultIdleCompaction = -1 }
	harness.Resumed = func(db any) { resumed(db.(*DB)) }
	harness.Settle = func(db any) { settle(db.(*DB)) }
	harness.Abandon = func(db any) error { return db.(*DB).abandon() }
	harness.ObjectDir = func(db any) any { return db.(*DB).objects.dir }
	harness.FilesOf = func(db any) (*harness.Files, func(), error) { return filesOf(db.(*DB)) }
}

// resumed returns when the store is not being resumed.
func resumed(d *DB) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.resumer.running {
		d.progress.Wait()
	}
}

// settle returns when no background work is left, and obsolete files that no reader needs are removed.
func settle(d *DB) {
	resumed(d)
	d.waitForBackground()
	d.cleaner.Wait()
}

// filesOf returns the files of a store that is settled. Those of the version stay until they are released.
func filesOf(d *DB) (*harness.Files, func(), error) {
	s := d.acquire(0)
	if s == nil {
		return nil, nil, d.unreadable()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return &harness.Files{Version: s.version, Tables: &d.tables, Blobs: &d.values.Blobs, FS: d.fs, Dir: d.dir,
		Unlisted: d.values.Files(), Stuck: len(d.compactions.StuckBlobs(s.version)), LogNum: d.logNum,
		Cleaner: &d.cleaner}, func() { s.release(0) }, nil
}

// WriteOptions say when a write is durable. Use Sync, NoSync or Async; nil means Sync.
type WriteOptions struct{ durability commit.Level }

// The three levels of durability. With each of them a prefix of the writes survives
// a crash: never a hole, never half a batch.
var (
	// Sync returns when the write is on stable storage: it survives a loss of power. Writers that come while a sync is
	// under way share the next one. The write is visible when it is durable, or when a later write with NoSync or Async
	// is: if the sync fails then, the error matches ErrNotDurable.
	Sync = &WriteOptions{commit.Synced}
	// NoSync returns when the operating system has the write: it survives a crash of the process, but may be lost with
	// the machine. It does not wait for the syncs of others.
	NoSync = &WriteOptions{commit.Written}
	// Async returns when the write is in memory, and hands it to the operating system soon: it may be lost with the
	// process. It does not wait for the syncs of others. For bulk loads.
	Async = &WriteOptions{commit.Buffered}
)

func (o *WriteOptions) level() commit.Level {
	if o == nil {
		return commit.Synced
	}
	return o.durability
}
