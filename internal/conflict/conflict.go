// Package conflict tells whether something that a transaction read was written since.
package conflict

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/iterator"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/readset"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/internal/version"
)

// Err is matched by the error of a read that has a later write.
var Err = errors.New("siftkv: conflict with a later write")

// The store itself has the later writes: there is no table of recent ones, and a write that is no transaction's costs
// nothing. The open snapshot keeps compaction from dropping the newest version of a key after it, tombstones included,
// and from taking its sequence number away. So what was written later is in a memtable, or in a table whose largest
// sequence number says so.

// Writes are the writes after write Since, deletions included. They are in Memtables and Tables, which have earlier
// ones too.
type Writes struct {
	Since     base.SeqNum
	Memtables []*memtable.Memtable
	Tables    []*version.Table
	Cache     *tablecache.Cache // opens the tables
}

// InState returns the writes after write since of a state: its memtables, of which mem is the active one, and its
// version.
func InState(since base.SeqNum, mem *memtable.Memtable, imms []*memtable.Memtable, v *version.Version,
	cache *tablecache.Cache) *Writes {
	w := &Writes{Since: since, Memtables: []*memtable.Memtable{mem}, Cache: cache}
	for _, m := range imms {
		if last := m.LastSeq.Load(); last == 0 || last > uint64(since) {
			w.Memtables = append(w.Memtables, m)
		}
	}
	if v.LargestSeq > since {
		w.Tables = v.WrittenAfter(since)
	}
	return w
}

// Check returns an error that matches Err and names a key if something that was read is among the writes.
func (w *Writes) Check(read *readset.Set) error {
	var key []byte
	for k := range read.Keys {
		key = append(key[:0], k...)
		if found, err := w.key(key); found || err != nil {
			return cmp.Or(err, fmt.Errorf("%w: key %.64q", Err, key))
		}
	}
	for _, s := range read.Spans {
		if found, err := w.span(s); found || err != nil {
			return cmp.Or(err, fmt.Errorf("%w: a key at or after %.64q, in a range that was scanned", Err, s.Lo))
		}
	}
	return nil
}

// key reports whether a key was written.
func (w *Writes) key(key []byte) (bool, error) {
	hash := filterpolicy.Hash(key)
	for _, m := range w.Memtables {
		if _, t, ok := m.Get(key, hash, base.MaxSeqNum); ok && t.SeqNum() > w.Since ||
			m.Tombstones().Cover(key, base.MaxSeqNum) > w.Since {
			return true, nil
		}
	}
	for _, t := range w.Tables {
		if !t.Contains(key) {
			continue
		}
		r, err := t.Open(w.Cache)
		if err != nil {
			return false, err
		}
		if r.Tombstones().Cover(key, base.MaxSeqNum) > w.Since {
			return true, nil
		}
		p := sstable.Probe{SkipValue: true} // not counted: no caller looks this key up
		if _, t, ok, err := r.Find(nil, key, hash, base.MaxSeqNum, &p); err != nil || ok && t.SeqNum() > w.Since {
			return err == nil, err
		}
	}
	return false, nil
}

// span reports whether a key of a span was written. It goes through all that the memtables and the tables have of it.
func (w *Writes) span(s rangedel.Span) (bool, error) {
	for _, m := range w.Memtables {
		if m.Tombstones().NewestIn(s.Lo, s.Hi) > w.Since || m.HasPoints() && w.among(m.NewIter(), s) {
			return true, nil
		}
	}
	for _, t := range w.Tables {
		if !t.Overlaps(s.Lo, s.Hi) {
			continue
		}
		r, err := t.Open(w.Cache)
		if err != nil {
			return false, err
		}
		if r.Tombstones().NewestIn(s.Lo, s.Hi) > w.Since {
			return true, nil
		}
		it := r.NewIter(sstable.IterOptions{})
		if w.among(it, s) || it.Error() != nil {
			return it.Error() == nil, it.Error()
		}
	}
	return false, nil
}

// among reports whether an iterator has a later write of a key of a span.
func (w *Writes) among(it iterator.Iter, s rangedel.Span) bool {
	for ok := it.SeekGE(base.SearchKey(s.Lo, base.MaxSeqNum)); ok; ok = it.Next() {
		k := it.Key()
		if s.Hi != nil && bytes.Compare(k.User, s.Hi) >= 0 {
			return false
		}
		if k.SeqNum() > w.Since {
			return true
		}
	}
	return false
}
