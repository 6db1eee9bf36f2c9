package job

import (
	"sync/atomic"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/callback"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/internal/version"
)

// An entry may hide an older version of its key, whose separated value is garbage once the two meet. The entry does
// not say so, and how many do differs by orders of magnitude. A store may overwrite millions of small values and never
// one of its large ones. So keys of each new table are looked up in what is older than it, up to 128 tombstones and
// 128 others, and the manifest keeps the estimate. A lookup asks bounds, filter and index first, as those of users do.

// maxRequests bounds the lookups that are under way at the same time, where reads are requests.
const maxRequests = 64

// HiddenBy returns the function Hidden of a tablemeta.Writer, for tables that are newer than some runs of a version. It
// is nil if these have no separated values. The caller refers to the version.
func HiddenBy(c *tablecache.Cache, v *version.Version, older []*version.Run) func(keys [][]byte) uint64 {
	var with []*version.Run // and those above: what hides a value already is found first
	for i, r := range older {
		if r.Totals().BlobBytes > 0 {
			with = older[:i+1]
		}
	}
	if v.BlobTotals().Files == 0 || len(with) == 0 {
		return nil
	}
	return func(keys [][]byte) uint64 {
		if !c.Far {
			sum := uint64(0)
			for _, key := range keys {
				sum += recordIn(c, with, key)
			}
			return sum
		}
		var sum atomic.Uint64
		callback.Parallel(len(keys), maxRequests, func(i int) { sum.Add(recordIn(c, with, keys[i])) })
		return sum.Load()
	}
}

// recordIn returns the bytes that the newest version of key in some runs takes in a blob file. An unreadable version
// counts as nothing: a read that needs it reports the error.
func recordIn(c *tablecache.Cache, runs []*version.Run, key []byte) uint64 {
	var buf [64]byte // for a handle
	hash := filterpolicy.Hash(key)
	for _, run := range runs {
		_, t := run.Find(key)
		if t == nil || !t.Contains(key) {
			continue
		}
		r, err := t.Open(c)
		if err != nil {
			return 0
		}
		var p sstable.Probe
		value, trailer, ok, err := r.Find(buf[:0], key, hash, base.MaxSeqNum, &p)
		switch {
		case err != nil:
			return 0
		case !ok || trailer.Kind() == base.KindMerge:
			continue
		case !trailer.Kind().Separated():
			return 0
		}
		h, _, err := blob.HandleOf(trailer.Kind(), value)
		if err != nil {
			return 0
		}
		return uint64(h.Length)
	}
	return 0
}
