package sstable

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/base"
)

// A KeySample has some keys of the entries of a file that hide older versions of their keys in older files: of the
// newest entry of each key that is no merge operand. Tombstones are sampled by themselves, since a few of them among
// many values may hide most.
type KeySample struct{ deletes, values base.Sample[[]byte] }

// sampledKeys bounds the keys of either sample.
const sampledKeys = 128

func (s *KeySample) add(k base.InternalKey) {
	part := &s.values
	switch k.Kind() {
	case base.KindDelete:
		part = &s.deletes
	case base.KindMerge:
		return
	}
	if part.Pick(sampledKeys) {
		part.Taken = append(part.Taken, bytes.Clone(k.User))
	}
}

// Estimate returns about what a sum over all such keys is, from the sums over those that were sampled.
func (s *KeySample) Estimate(sum func(keys [][]byte) uint64) (all uint64) {
	for _, part := range []*base.Sample[[]byte]{&s.deletes, &s.values} {
		if n := len(part.Taken); n > 0 {
			all += uint64(float64(sum(part.Taken)) * (float64(part.Count) / float64(n)))
		}
	}
	return all
}
