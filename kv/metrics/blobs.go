package metrics

import "github.com/siftkv/siftkv/internal/blob"

// Blobs has the figures of the blob files (see Options.SeparateFrom). A store without any has zeros.
//
// Each byte of a blob file is that of a record that a sorted file refers to, garbage, or one of BlobOverhead:
//
//	Bytes = LiveBytes + Garbage + Files × BlobOverhead
type Blobs struct {
	// Now. None of it is counted as it comes and goes: it is what sorted files say that they refer to.
	Files       int
	Bytes       int64  // of the files
	Records     uint64 // of all files: each is a value, its key, and 15 to 30 bytes
	LiveRecords uint64 // of them, those that a sorted file refers to
	LiveBytes   uint64 // of these
	Garbage     uint64 // bytes of the others
	// HiddenBytes are those of LiveBytes that sorted files above the last level refer to. They are newer than what the
	// last level has of the same keys. About as much of that may be garbage, which shows when a compaction brings both
	// together.
	HiddenBytes uint64

	// Since Open. Bytes that are written are among FlushBytes and CompactionWrittenBytes, except those of Committed.
	Written   uint64 // bytes of blob files, less what of them was relocated
	Committed uint64 // of these, by commits (Options.SeparateAtCommit) and SetReader
	Relocated uint64 // bytes of records that compactions copied from one blob file to another
	Reads     uint64 // records that lookups and iterators read for their values
	Read      uint64 // bytes of these
	CacheHits uint64 // values that were in the block cache
	GCs       uint64 // compactions that were picked for blob GC
}

// BlobOverhead is how many bytes a blob file has in addition to its records.
const BlobOverhead = blob.MinSize

// SpaceAmplification returns how many bytes blob files take for each byte of records that is referred to, hidden
// garbage included. It is 0 if there are no blob files.
func (b *Blobs) SpaceAmplification() float64 { return ratio(uint64(b.Bytes), b.LiveBytes) }
