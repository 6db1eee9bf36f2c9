package kv

import (
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/sstable"
)

// A scanPrefix is the prefix that all keys between an iterator's bounds have, as
// filters know it. A nil scanPrefix is none.
type scanPrefix struct{ hash uint64 }

// scanPrefix returns the prefix of the keys of [lo, hi), or nil if they have none in
// common that the store's extractor knows.
func (d *DB) scanPrefix(lo, hi []byte) *scanPrefix {
	if d.opts.Prefix == nil {
		return nil
	}
	prefix, ok := filterpolicy.WithinPrefix(d.opts.Prefix, lo, hi)
	if !ok {
		return nil
	}
	return &scanPrefix{hash: filterpolicy.Hash(prefix)}
}

// rulesOut reports whether a table has no key of the prefix.
func (p *scanPrefix) rulesOut(d *DB, r *sstable.Reader) bool {
	if p == nil || !r.HasPrefixFilter() {
		return false
	}
	d.counters.prefixChecks.Add(1)
	if r.MayContainPrefix(p.hash) {
		return false
	}
	d.counters.prefixNegatives.Add(1)
	return true
}
