package memtable

import (
	"cmp"
	"slices"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// Measure returns what the entries of a record take at the most, the argument for Reserve,
// and which features of the store the record uses.
func Measure(record []byte) (size int, used manifest.Features, err error) {
	tombs := 0
	for e, err := range batchrepr.All(record) {
		if err != nil {
			return 0, 0, err
		}
		kind := e.Key.Kind()
		used |= batchrepr.Features(kind)
		if kind == base.KindRangeDelete {
			tombs = min(tombs+TombstoneSize(len(e.Key.User), len(e.Value)), maxTombstoneBytes)
		} else {
			size += EntrySize(len(e.Key.User), len(e.Value))
		}
	}
	return size + tombs, used, nil
}

// inOrderFrom is the number of entries from which a record is sorted first: fewer cache misses, see BenchmarkApply.
const inOrderFrom = 1000

// Apply adds the entries of a record, with filterpolicy.Hash as the hash of keys. Records may be applied concurrently,
// but those with range tombstones one after the other, in their order.
func (m *Memtable) Apply(record []byte) error {
	r, err := batchrepr.NewReader(record)
	if err != nil {
		return err
	}
	if r.Len() >= inOrderFrom {
		if o, err := Sort(record); err == nil {
			return m.applyInOrder(record, o)
		}
	}
	return m.ApplyEntries(r)
}

// ApplyEntries adds the entries that are left in r, on the terms of Apply.
func (m *Memtable) ApplyEntries(r batchrepr.Reader) error {
	if r.Len() == 1 {
		return m.apply(r, true, nil)
	}
	return m.ApplyGroup(r)
}

// ApplyGroup is ApplyEntries for each of readers, in their order, up to the first error.
func (m *Memtable) ApplyGroup(readers ...batchrepr.Reader) (err error) {
	var in inserts
	for i := 0; i < len(readers) && err == nil; i++ {
		err = m.apply(readers[i], true, &in)
	}
	return cmp.Or(err, in.flush(m))
}

// apply is ApplyEntries, of the range tombstones alone unless points is set. Points are added with in unless it is nil.
func (m *Memtable) apply(r batchrepr.Reader, points bool, in *inserts) error {
	var tombs []rangedel.Tombstone
	for {
		e, ok, err := r.Next()
		if err != nil {
			return err
		}
		if !ok {
			m.addTombstones(tombs)
			return nil
		}
		if e.Key.Kind() != base.KindRangeDelete {
			if !points {
				continue
			}
			hash := filterpolicy.Hash(e.Key.User)
			if in == nil {
				err = m.Add(e.Key, hash, e.Value)
			} else {
				err = in.add(m, e.Key, hash, e.Value)
			}
			if err != nil {
				return err
			}
			continue
		}
		k := e.Key.Clone()
		end, err := rangedel.DecodeEnd(slices.Clone(e.Value))
		if err != nil {
			return err
		}
		tombs = append(tombs, rangedel.Tombstone{Start: k.User, End: end, Seq: k.SeqNum()})
	}
}
