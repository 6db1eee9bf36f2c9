package version

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/tablecache"
)

// Range tombstones are never merged for a whole version: that would take time for every
// tombstone with every new version. Each table has its own as fragments. A lookup asks,
// in each sorted run, the one table whose bounds include the key.

// HasTombstones reports whether there are tables with range tombstones.
func (v *Version) HasTombstones() bool { return v.hasTombstones }

// TombstoneCover returns the newest sequence number, at or below at, of a range tombstone
// over key; 0 if there is none. It opens the tables that may have one.
func (v *Version) TombstoneCover(c *tablecache.Cache, key []byte, at base.SeqNum) (cover base.SeqNum, err error) {
	for _, r := range v.Runs {
		if r.WithTombstones == nil {
			continue
		}
		_, t := r.WithTombstones.Find(key)
		if t == nil || bytes.Compare(t.Smallest, key) > 0 {
			continue
		}
		set, err := t.Tombstones(c)
		if err != nil {
			return 0, err
		}
		cover = max(cover, set.Cover(key, at))
	}
	return cover, nil
}

// Tombstones returns the table's range tombstones. It opens the table.
func (t *Table) Tombstones(c *tablecache.Cache) (*rangedel.Set, error) {
	r, err := t.Open(c)
	if err != nil {
		return nil, err
	}
	return r.Tombstones(), nil
}

// OpenTombstones opens the tables with range tombstones that an edit has added to v, so that no reader has to wait for
// that: every lookup within their bounds needs them. If a table cannot be opened, the callers that need it get the
// error. Afterwards it is known what the tombstones hide in blob files: see HiddenByRanges. v must not be shared yet.
func (v *Version) OpenTombstones(c *tablecache.Cache, e *manifest.Edit) {
	for i := range e.Added {
		a := &e.Added[i].Table
		if a.RangeDeletes == 0 {
			continue
		}
		if p := v.files.get(a.Num); p != nil {
			_, _ = p.table.Open(c)
			p.table.hides.Store(0) // it may be in another place than before
		}
	}
	v.weighTombstones()
}

// withTombstones returns those of tables that have range tombstones.
func withTombstones(tables []*Table) (with []*Table) {
	for _, t := range tables {
		if t.RangeDeletes > 0 {
			with = append(with, t)
		}
	}
	return with
}
