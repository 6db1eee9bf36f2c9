package sstable

import (
	"fmt"

	"github.com/siftkv/siftkv/internal/compression"
)

// Compression says how data blocks are compressed. A block that does not shrink
// by an eighth is stored as it is, whatever the setting.
type Compression = compression.Kind

// The compressions. The zero value stands for the default, Snappy.
const (
	DefaultCompression = compression.Default
	NoCompression      = compression.None
	Snappy             = compression.Snappy
	Zstd               = compression.Zstd
)

// ParseCompression is the inverse of Compression.String.
func ParseCompression(name string) (Compression, error) {
	c, err := compression.Parse(name)
	if err != nil {
		err = fmt.Errorf("sstable: %w", err)
	}
	return c, err
}

// maxBlockSize bounds a block, decoded.
const maxBlockSize = compression.MaxSize

var errExpansion = fmt.Errorf("decoded it would be larger than %d bytes and than %d times its stored size; "+
	"if the file is from a writer of an earlier version, open it with ReaderOptions.AnyExpansion, "+
	"or ingest it with SkipVerify", compression.FreeExpansion, compression.MaxExpansion)
