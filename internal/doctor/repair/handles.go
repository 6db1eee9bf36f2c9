package repair

import (
	"errors"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/manifest"
)

// A record of a blob file is referred to by one entry of a store. Without a manifest that can be trusted, tables may
// be there that a compaction was made of and those that it made: their entries have the same handles, and
// perhaps other sequence numbers, since a compaction sets those to zero that it has no more use for. Such
// tables are merged into one run, which keeps the entry with the largest.

type blobRef = manifest.BlobRef

// checkHandles makes sure that handles which the survey has not checked lead to records of their keys. A blob
// file of which one does not is not whole.
func (r *repairer) checkHandles() error {
	for _, p := range r.pieces {
		if p.checked || len(p.t.Blobs) == 0 {
			continue
		}
		err := eachHandle(p, func(k base.InternalKey, h blob.Handle) error {
			b := r.blob(h.File)
			if !b.whole {
				return nil
			}
			src, err := r.open(b)
			if err == nil && src != nil {
				_, err = src.OpenStream(k.User, h)
			}
			if src == nil && err == nil || err != nil && r.s.IsDamage(err) {
				b.whole, err = false, nil
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachHandle shows visit the entries of a table that have handles.
func eachHandle(p *piece, visit func(k base.InternalKey, h blob.Handle) error) (err error) {
	in, err := openPiece(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.r.Close()) }()
	for ok := in.it.First(); ok; ok = in.it.Next() {
		k := in.it.Key()
		if !k.Kind().Apart() {
			continue
		}
		h, _, err := blob.HandleOf(k.Kind(), in.it.Value())
		if err == nil {
			err = visit(k, h)
		}
		if err != nil {
			return err
		}
	}
	return in.it.Error()
}

// A place is that of a record.
type place struct {
	file   uint64
	offset int64
}

// uniteShared joins groups of which tables have handles of the same records. It holds 24 bytes or more for each
// handle of tables that may.
func (r *repairer) uniteShared(groups []group) ([]group, error) {
	owner := map[place]int{} // the group that has the handle
	into := make([]int, len(groups))
	root := func(i int) int {
		for into[i] != i {
			i = into[i]
		}
		return i
	}
	for i := range groups {
		into[i] = i
		p := groups[i].pieces[0]
		if len(p.t.Blobs) == 0 {
			continue
		}
		err := eachHandle(p, func(_ base.InternalKey, h blob.Handle) error {
			at := place{h.File, h.Offset}
			if j, ok := owner[at]; ok {
				into[root(i)] = root(j)
			} else {
				owner[at] = i
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for i := range slices.Backward(groups) {
		if j := root(i); j != i {
			groups[j].join(groups[i])
		}
	}
	n := 0
	for i := range groups {
		if into[i] == i {
			groups[n] = groups[i]
			n++
		}
	}
	return groups[:n], nil
}

// A handlesOfKey knows the records that versions of the current key have handles of.
type handlesOfKey struct {
	key  []byte
	seen []place
}

// has reports whether a newer version of the key has the same handle: then they are one write.
func (s *handlesOfKey) has(k base.InternalKey, value []byte) bool {
	if string(s.key) != string(k.User) {
		s.key, s.seen = append(s.key[:0], k.User...), s.seen[:0]
	}
	if !k.Kind().Apart() {
		return false
	}
	h, _, err := blob.HandleOf(k.Kind(), value)
	if err != nil {
		return false // the table's writer says so
	}
	at := place{h.File, h.Offset}
	if slices.Contains(s.seen, at) {
		return true
	}
	s.seen = append(s.seen, at)
	return false
}
