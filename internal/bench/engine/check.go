package engine

import (
	"cmp"
	"slices"
	"strings"

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
	if !slices.Contains(Compressions, s.Compression) {
		return bench.Usagef("%scompression %s: choose from %s", prefix, s.Compression, strings.Join(Compressions, ", "))
	}
	for _, b := range []struct {
		name          string
		value, lo, hi int64
	}{
		{"cache", s.CacheBytes, minCache, 1 << 40},
		{"memtable", s.MemtableBytes, minMemtable, MaxMemtable},
		{"block", int64(s.BlockBytes), minBlock, maxBlock},
		{"max-compactions", int64(s.Compactions), 1, 64},
		{"siftkv-index", int64(cmp.Or(s.SiftKVIndexBytes, minIndex)), minIndex, 1 << 30},
		{"pebble-index", int64(s.PebbleIndexBytes), 0, 1 << 30},
	} {
		if b.value < b.lo || b.value > b.hi {
			return bench.Usagef("%s%s %d: want %d to %d", prefix, b.name, b.value, b.lo, b.hi)
		}
	}
	return nil
}
