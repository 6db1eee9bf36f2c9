package sstable

import (
	"errors"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/sstable"
)

// FormatVersion is the newest version of the file format. This package reads it and all versions
// before it. What its Writer writes has version 3; 4 is for stores, which have values in blob files.
const FormatVersion = sstable.FormatVersion

var (
	// ErrCorruption is matched by every error about damaged bytes, which is a *CorruptionError or wraps one.
	ErrCorruption = base.ErrCorruption
	// ErrNotFound is returned by Get.
	ErrNotFound = base.ErrNotFound
	// ErrClosed is returned by a closed reader or iterator.
	ErrClosed = base.ErrClosed
	// ErrNewerFormat is matched when a newer version of the package wrote the file.
	ErrNewerFormat = sstable.ErrNewerFormat
	// ErrOrder is matched when a key is added that does not come after the last one.
	ErrOrder = sstable.ErrOrder
	// ErrMergeOperand is matched when the newest version of a key is an operand of
	// a merger: only the store that the file comes from can make a value of it.
	ErrMergeOperand = errors.New("siftkv: the key's newest version is a merge operand")
	// ErrValueSeparated is matched when the newest version of a key has its value in a blob file:
	// only the store that the file comes from finds it.
	ErrValueSeparated = errors.New("siftkv: the value is in a blob file")
)

// A CorruptionError says which bytes of which file are damaged: File, Offset (-1 if it is not
// known) and What. The caller may get it with errors.As.
type CorruptionError = base.CorruptionError

// Compression says how data blocks are compressed. A block that does not shrink
// by an eighth is stored as it is, whatever the setting.
type Compression = sstable.Compression

// The compressions. The zero value stands for the default, Snappy.
const (
	DefaultCompression = sstable.DefaultCompression
	NoCompression      = sstable.NoCompression
	Snappy             = sstable.Snappy
	Zstd               = sstable.Zstd
)

// ParseCompression returns the compression of a name: "none", "snappy", "zstd" or "default".
func ParseCompression(name string) (Compression, error) { return sstable.ParseCompression(name) }

// Properties describe what is in a file. They have Entries, of which Deletes, Merges, Expiring and Separated are some;
// RangeDeletes; and DataBlocks. They have the bytes of each sort (RawKeyBytes, RawValueBytes, DataBytes, IndexBytes,
// FilterBytes, RangeFilterBytes), and the Smallest and the Largest key, nil in a file without entries. And they have
// the settings that the file was written with (FilterPolicy, RangeFilterPolicy, Compression, BlockSize and others).
type Properties = sstable.Properties

// A FileInfo has a file's Properties, its ID, its Size in bytes and that of its tail, TailSize:
// ReaderOptions take ID and TailSize.
type FileInfo = sstable.FileInfo

// A SeqNum is the sequence number that a store has given to an entry, zero in the files of a Writer.
type SeqNum = base.SeqNum

// BlobRefs are the blob files in which a store's file has values, with the number of records and the
// bytes that they take there.
type BlobRefs = sstable.BlobRefs

// A BlobRef is one of BlobRefs.
type BlobRef = sstable.BlobRef

// Octiles say when the values of a file expire: the i-th (from 0) is a moment, in microseconds
// since 1970 UTC, at which about i+1 eighths of them have.
type Octiles = base.Octiles

// A Droppable says how many bytes in blob files are free once a store's file is rewritten.
type Droppable = base.Droppable

// A Probe is what one lookup did in one file, as kv.DB.Explain tells it.
type Probe = sstable.Probe

// A FilterVerdict is what a file's filter said of a key.
type FilterVerdict = sstable.FilterVerdict

// The verdicts.
const (
	Unfiltered = sstable.Unfiltered // the file has no filter that could be asked
	Negative   = sstable.Negative   // the key is not in the file
	Maybe      = sstable.Maybe      // the key may be in the file
	Remembered = sstable.Remembered // the filter says so, and it is remembered that the key is not
)
