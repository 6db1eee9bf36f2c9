package repair

import (
	"cmp"
	"errors"
	"slices"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/manifest"
)

// One entry of a store refers to a record of a blob file. Without a trusted manifest, the directory may hold both the
// inputs and the outputs of a compaction. Their entries have the same handles, but perhaps other sequence numbers,
// since a compaction sets those to zero that are not needed any more. Such tables are merged into one run, which keeps
// the entry with the largest.

type blobRef = manifest.BlobRef

// A handleSum is a handle that the survey has not checked: where it leads, and a hash of all that it says.
type handleSum struct {
	offset int64
	sum    uint64
}

func sumOf(key []byte, h blob.Handle) handleSum {
	place := h.Ordinal*0x9e3779b97f4a7c15 ^ uint64(h.Length)*0xc2b2ae3d27d4eb4f ^ uint64(h.Size)
	return handleSum{h.Offset, filterpolicy.Hash(key) ^ place}
}

// checkHandles makes sure that handles which the survey has not checked lead to records of their keys, and say of them
// what is. A blob file of which one does not is not whole. It holds 16 bytes for each handle.
func (r *repairer) checkHandles() error {
	sums := map[*blobFile][]handleSum{}
	for _, p := range r.pieces {
		if p.checked || len(p.t.Blobs) == 0 {
			continue
		}
		err := eachHandle(p, func(k base.InternalKey, h blob.Handle) error {
			if b := r.blob(h.File); b.whole {
				sums[b] = append(sums[b], sumOf(k.User, h))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for b, of := range sums {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		slices.SortFunc(of, func(a, b handleSum) int {
			return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.sum, b.sum))
		})
		meet, err := r.meetRecords(b, slices.Compact(of))
		if err != nil {
			return err
		}
		b.whole = meet
	}
	return nil
}

// meetRecords reports whether handles, by ascending offset, are those of records of a blob file.
func (r *repairer) meetRecords(b *blobFile, handles []handleSum) (bool, error) {
	src, err := r.open(b)
	if src == nil || err != nil {
		return false, err
	}
	s, err := blob.NewScanner(src)
	for err == nil && len(handles) > 0 && s.Next() {
		if h := s.Handle(b.num); h.Offset == handles[0].offset {
			if sumOf(s.Record().Key, h) != handles[0] {
				return false, nil
			}
			handles = handles[1:]
		}
	}
	if err == nil {
		err = s.Err()
	}
	if err != nil && !r.s.IsDamage(err) {
		return false, err
	}
	return err == nil && len(handles) == 0, nil
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
		if !k.Kind().Separated() {
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
				groups[i].shared = groups[i].shared || i == j
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
	if !k.Kind().Separated() {
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
