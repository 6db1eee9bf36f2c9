package sstable

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/cache"
	"github.com/siftkv/siftkv/internal/falsepositives"
)

// WriterOptions are those of package siftkv/sstable, where they are documented.
type WriterOptions struct {
	BlockSize       int
	RestartInterval int
	Compression     Compression
	Filter          filterpolicy.Policy
	Prefix          filterpolicy.Prefix
	PrefixOnly      bool
	RangeFilter     filterpolicy.RangePolicy // nil: none
	IndexPartition  int
	Merger          string // goes into the properties of a file that has merge operands
	ID              uint64
}

const (
	defaultBlockSize       = 4096
	defaultRestartInterval = 16
	defaultIndexPartition  = 1 << 20
	maxBlockSizeOption     = 64 << 20
)

func (o *WriterOptions) withDefaults() (WriterOptions, error) {
	w := *cmp.Or(o, &WriterOptions{})
	w.BlockSize = cmp.Or(w.BlockSize, defaultBlockSize)
	w.RestartInterval = cmp.Or(w.RestartInterval, defaultRestartInterval)
	w.IndexPartition = cmp.Or(w.IndexPartition, defaultIndexPartition)
	w.Compression = cmp.Or(w.Compression, Snappy)
	if w.Filter == nil {
		w.Filter = filterpolicy.Default()
	}
	switch {
	case w.BlockSize < 64 || w.BlockSize > maxBlockSizeOption:
		return w, fmt.Errorf("sstable: BlockSize is %d bytes: want 64 to %d", w.BlockSize, maxBlockSizeOption)
	case w.RestartInterval < 1 || w.RestartInterval > 1024:
		return w, fmt.Errorf("sstable: RestartInterval is %d: want 1 to 1024", w.RestartInterval)
	case w.IndexPartition < 0:
		return w, fmt.Errorf("sstable: IndexPartition is %d bytes: want a positive size", w.IndexPartition)
	case w.PrefixOnly && w.Prefix == nil:
		return w, errors.New("sstable: PrefixOnly is set and Prefix is not")
	case !w.Compression.Valid():
		return w, fmt.Errorf("sstable: unknown Compression %d", w.Compression)
	}
	return w, nil
}

// ReaderOptions are those of package siftkv/sstable, where they are documented, and what a store adds.
type ReaderOptions struct {
	CacheSize    int64
	Name         string
	Hint         string
	TailSize     int64
	ID           uint64
	Filter       filterpolicy.Policy
	Prefix       filterpolicy.Prefix
	RangeFilter  filterpolicy.RangePolicy
	Map          bool
	AnyExpansion bool
	SkipFilter   bool

	// Cache is a cache that readers share. It replaces CacheSize.
	Cache *cache.Cache
	// Owner counts the reader's blocks in the Cache; nil: they are not counted.
	Owner *cache.Owner
	// Room, if it is not nil, is called before filters of a size are loaded. If it returns
	// false, they stay on disk, where WithFilters finds them.
	Room func(bytes int64) bool
	// Seq, if not zero, is the sequence number of every entry and range tombstone: that of a file that a store took in
	// as it was written, with zeros. A file with other numbers is refused.
	Seq base.SeqNum
	// FalsePositives is where the reader remembers the keys for which its filter said "maybe" and which
	// are not in the file. The zero value remembers nothing.
	FalsePositives falsepositives.Table
}
