// Package harness lets the test programs of this module open stores with settings that no
// application has. These are another file system, which fails I/O and cuts the power, and
// sizes and times that are small enough for tests.
package harness

import (
	"time"

	"github.com/siftkv/siftkv/internal/vfs"
)

// A Harness replaces parts of a store. A zero field leaves what applications have.
type Harness struct {
	FS vfs.FS // of a store in an object store, that of its local disk

	// FirstRetry and LastRetry bound the time between two attempts to resume after an
	// error of the disk, and after compactions that fail.
	FirstRetry, LastRetry time.Duration

	// A manifest of more than MaxManifestSize bytes is replaced.
	MaxManifestSize int64

	// RangeSize is the size in bytes of the ranges that the merge of a compaction is cut into.
	RangeSize int64

	// A batch that takes at least OwnTableFrom bytes in a memtable gets one of its own.
	OwnTableFrom int

	// BlobSize is the size in bytes of a blob file at which the next is begun.
	BlobSize int64

	// DB.SetReader separates values of at least LeastStreamed bytes.
	LeastStreamed int64
}

// Apply makes stores that are opened with options, a *kv.Options, use h. Package kv sets
// it, as only it can reach the fields.
var Apply func(options any, h Harness)

// CheckBlobs counts again what the tables of a store, a *kv.DB, refer to of its blob files. It returns an error if the
// store has other sums. Package kv sets it.
var CheckBlobs func(db any) error

// StuckBlobs returns how many blob files of a store, a *kv.DB, are not collected, because they or tables that refer to
// them could not be read. Package kv sets it.
var StuckBlobs func(db any) int
