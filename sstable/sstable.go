package sstable

import "github.com/siftkv/siftkv/internal/sstable"

// Compression says how data blocks are compressed. A block that does not shrink by an eighth
// is stored as it is, whatever the setting.
type Compression = sstable.Compression

// The compressions. The zero value stands for the default, Snappy.
const (
	DefaultCompression = sstable.DefaultCompression
	NoCompression      = sstable.NoCompression
	Snappy             = sstable.Snappy
	Zstd               = sstable.Zstd
)

// ParseCompression is the inverse of Compression.String.
func ParseCompression(name string) (Compression, error) { return sstable.ParseCompression(name) }

// FormatVersion is the newest version of the file format that this package writes, and reads with
// all before it.
const FormatVersion = sstable.FormatVersion

// Errors.
var (
	ErrCorruption   = sstable.ErrCorruption
	ErrNotFound     = sstable.ErrNotFound
	ErrClosed       = sstable.ErrClosed
	ErrMergeOperand = sstable.ErrMergeOperand
	ErrNewerFormat  = sstable.ErrNewerFormat
	ErrOrder        = sstable.ErrOrder
)

// Names of the implementation.
type (
	Writer        = sstable.Writer
	WriterOptions = sstable.WriterOptions
	Reader        = sstable.Reader
	ReaderOptions = sstable.ReaderOptions
	Entry         = sstable.Entry
	FileInfo      = sstable.FileInfo
	Properties    = sstable.Properties
	Octiles       = sstable.Octiles
)

// The ways to make one.
var (
	NewWriter = sstable.NewWriter
	NewReader = sstable.NewReader
	Open      = sstable.Open
)
