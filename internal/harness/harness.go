// Package harness lets the test programs of this module open stores with settings that no application has, and look at
// their files. Settings are another file system, which fails I/O and cuts the power, and small sizes and times.
package harness

import (
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/internal/values"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A Harness replaces parts of a store. A zero field leaves what applications have.
type Harness struct {
	FS              vfs.FS                  // of a store in an object store, that of its local disk
	Backoff         compaction.Backoff      // between attempts to resume after an error, and after failed compactions
	MaxManifestSize int64                   // in bytes; a larger manifest is replaced
	RangeSize       int64                   // in bytes, of the ranges that the merge of a compaction is cut into
	BlobSize        int64                   // in bytes, of a blob file at which the next is begun
	MinStreamed     int64                   // in bytes, of the values that DB.SetReader separates
	MaxMerged       int64                   // in bytes, of an entry that is made of operands
	OwnTableFrom    int                     // bytes of a batch in a memtable at which it gets one of its own
	TuneObjects     func(*objectdir.Params) // of a store in an object store
}

// AtOnce is a Backoff of no time.
var AtOnce = compaction.Backoff{First: 1, Max: 1}

// Of returns the harness of options, a *kv.Options. Package kv sets it, as only it can reach the field.
var Of func(options any) *Harness

// SeparateByDefault makes stores separate values of a length on, in bytes, unless their options say otherwise.
var SeparateByDefault func(from int, atCommit bool)

// NoIdleJobs makes the default of kv.Options.IdleCompaction never.
var NoIdleJobs func()

// Resumed returns when a store, a *kv.DB, is not being resumed.
var Resumed func(db any)

// Settle returns when a store, a *kv.DB, has no background work left. Package kv sets it.
var Settle func(db any)

// Abandon releases what a store, a *kv.DB, has open, and leaves its directory as a killed process does.
var Abandon func(db any) error

// ObjectDir returns the directory of a store, a *kv.DB, in an object store. Package kv sets it.
var ObjectDir func(db any) any

// Files are the files of a store at one moment, and what opens them.
type Files struct {
	Version  *version.Version
	Tables   *tablecache.Cache
	Blobs    *version.BlobCache
	FS       vfs.FS
	Dir      string
	Unlisted []*values.File   // blob files that memtables keep
	Stuck    int              // blob files that blob GC leaves, as they or their tables are damaged
	LogNum   uint64           // of the first log with writes that are in no table
	Cleaner  *version.Cleaner // removes them
}

// FilesOf returns the files of a store, a *kv.DB, that is settled. Those of the version stay until they are released.
var FilesOf func(db any) (f *Files, release func(), err error)
