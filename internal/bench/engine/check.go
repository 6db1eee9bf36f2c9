package engine

import (
	"cmp"

	"github.com/siftkv/siftkv/internal/bench"
)

// Bounds of the common settings.
const (
	minCache    = 64 << 10 // engines take 0 for their default, and defaults differ
	minMemtable = 64 << 10
	minBlock    = 256
	minIndex    = 64
	maxBlock    = 1 << 20

	// MaxMemtable bounds Settings.MemtableBytes.
	MaxMemtable = 1 << 30
)

// Check reports the first setting that makes no sense, under the name that the user
// knows it by: "--cache" if the prefix is "--".
func (s *Settings) Check(prefix string) error {
	if err := bench.CheckNames(prefix+"compression", []string{s.Compression}, Compressions); err != nil {
		return err
	}
	return bench.CheckBounds(
		bench.Bound{Flag: prefix + "cache", Value: s.CacheBytes, Low: minCache, High: 1 << 40},
		bench.Bound{Flag: prefix + "memtable", Value: s.MemtableBytes, Low: minMemtable, High: MaxMemtable},
		bench.Bound{Flag: prefix + "block", Value: int64(s.BlockBytes), Low: minBlock, High: maxBlock},
		bench.Bound{Flag: prefix + "max-compactions", Value: int64(s.Compactions), Low: 1, High: 64},
		bench.Bound{Flag: prefix + "siftkv-index", Value: int64(cmp.Or(s.SiftKVIndexBytes, minIndex)), Low: minIndex,
			High: 1 << 30},
		bench.Bound{Flag: prefix + "pebble-index", Value: int64(s.PebbleIndexBytes), High: 1 << 30},
	)
}
