package sstable

import (
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/sstable"
)

// WriterOptions are the settings of a Writer. The zero value of a field means
// its default; a nil *WriterOptions is all defaults.
type WriterOptions struct {
	// BlockSize is the target size of a data block in bytes before compression: 4096 by default, 64 to 64 MiB. A larger
	// entry gets a block of its own. See ReaderOptions.CacheSize for what a cache keeps.
	BlockSize int
	// RestartInterval is the number of entries between two that store their whole key: 16 by default, 1 to 1024. Fewer
	// make lookups faster, more make blocks smaller.
	RestartInterval int
	// Compression is Snappy by default.
	Compression Compression
	// Filter builds the file's filter. The default is "blocked:10"; the policy "none" writes no filter.
	Filter filterpolicy.Policy
	// Prefix, if set, puts the prefixes of keys into the filter, so that a scan
	// within one prefix can skip the file (Reader.MayContainPrefix).
	Prefix filterpolicy.Prefix
	// PrefixOnly keeps whole keys out of the filter: it is smaller if many keys share a prefix, and says "maybe" to
	// every key with an existing prefix. A file with a key that has no prefix is then written without a filter.
	PrefixOnly bool
	// RangeFilter builds the file's range filter, which tells scans within bounds that the file has nothing for them
	// (Reader.MayContainRange). By default there is none. Readers of earlier versions of this package skip it.
	RangeFilter filterpolicy.RangePolicy
	// An index of at least IndexPartition bytes is cut into leaves, which are read on demand and cached: 1 MiB by
	// default. Leaves have about 16 KiB, or that size if it is less.
	IndexPartition int
	// Merger is the name of the merger of merge operands, which only a store writes.
	Merger string
	// ID is a number of the file that its checksums depend on, so that a block
	// of another file in its place is noticed. Zero draws a random one.
	ID uint64
}

// ReaderOptions are the settings of a Reader. The zero value of a field means
// its default; a nil *ReaderOptions is all defaults.
type ReaderOptions struct {
	// CacheSize is the number of bytes of decoded blocks that the reader keeps: 8 MiB by default, negative for none. A
	// block of more than a quarter of it, or than 2 MiB, is not kept but read whenever it is needed.
	CacheSize int64
	// Name is what errors call the file. The default is the path for Open, none for NewReader.
	Name string
	// Hint is the command that errors about damage tell the reader to run.
	Hint string
	// TailSize is the length of the file's tail if it is known: opening then
	// takes one read. Otherwise a guess is read first.
	TailSize int64
	// ID is the file's expected id; a file with another is refused. Zero: any.
	ID uint64
	// Filter, if it is a filterpolicy.Decoder, decodes filters of its name; those of the
	// families of package filterpolicy are decoded without it.
	Filter filterpolicy.Policy
	// Prefix extracts prefixes for MayContainPrefix, and for lookups in files with filters of prefixes only. A file
	// that was written with another extractor is not asked for prefixes.
	Prefix filterpolicy.Prefix
	// RangeFilter, if it is a filterpolicy.RangeDecoder, decodes range filters of its name; those
	// of the families of package filterpolicy are decoded without it.
	RangeFilter filterpolicy.RangePolicy
	// Map reads data blocks of a file without compression where the system has them in
	// memory, past the cache: faster, but a block is verified only when it is first
	// read. It has no effect on platforms and files that cannot be mapped.
	Map bool
	// AnyExpansion admits every block that a writer of this package has ever written. Before writers avoided it, Zstd
	// could store a block of more than a mebibyte in less than a 64th of its size, down to a ten thousandth for one
	// byte repeated. Without AnyExpansion such a block counts as damaged, so that what a lookup allocates stays in
	// proportion to the file, even a hostile one.
	AnyExpansion bool
	// SkipFilter leaves the filters on disk: no lookup asks them.
	SkipFilter bool
}

func (o *ReaderOptions) internal() *sstable.ReaderOptions {
	if o == nil {
		return nil
	}
	return &sstable.ReaderOptions{CacheSize: o.CacheSize, Name: o.Name, Hint: o.Hint, TailSize: o.TailSize, ID: o.ID,
		Filter: o.Filter, Prefix: o.Prefix, RangeFilter: o.RangeFilter, Map: o.Map, AnyExpansion: o.AnyExpansion,
		SkipFilter: o.SkipFilter}
}

// IterOptions are the settings of an Iter.
type IterOptions struct {
	// Sequential is for one pass over much of the file: it prefetches in large pieces and leaves the cache as it is.
	Sequential bool
}
