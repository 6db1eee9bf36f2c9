package iterator

import (
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/sstable"
)

// A Prefix is the prefix that all keys of a scan share, as filters know it. A nil Prefix is none.
type Prefix struct {
	hash  uint64
	stats *counters.Prefix
}

// PrefixWithin returns the prefix of the keys of [lo, hi), or nil if they have none in common that the extractor knows,
// or there is no extractor.
func PrefixWithin(p filterpolicy.Prefix, lo, hi []byte, s *counters.Prefix) *Prefix {
	if p == nil {
		return nil
	}
	prefix, ok := filterpolicy.WithinPrefix(p, lo, hi)
	if !ok {
		return nil
	}
	return &Prefix{filterpolicy.Hash(prefix), s}
}

// rulesOut reports whether a table has no key of the prefix.
func (p *Prefix) rulesOut(r *sstable.Reader) bool {
	if p == nil || !r.HasPrefixFilter() {
		return false
	}
	p.stats.Checks.Add(1)
	if r.MayContainPrefix(p.hash) {
		return false
	}
	p.stats.Negatives.Add(1)
	return true
}
