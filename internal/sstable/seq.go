package sstable

import "github.com/siftkv/siftkv/internal/base"

// A store ingests a file by giving all of its entries one sequence number, which is in the manifest and not in the
// file. So the file need not be rewritten, and other stores may use it too. The file's own numbers are zero, so that a
// trailer of the file and the number make the trailer that readers see.

// lift makes of a trailer in the file the one that readers see.
func (r *Reader) lift(t base.Trailer) base.Trailer { return t | base.MakeTrailer(r.seq, 0) }

// local makes of a key that readers look for the one to look for in the file. It is valid until the next call.
func (i *Iter) local(k base.InternalKey) base.InternalKey {
	seq := i.r.seq
	switch {
	case seq == 0:
		return k
	case k.SeqNum() > seq:
		return base.SearchKey(k.User, base.MaxSeqNum)
	case k.SeqNum() == seq:
		return base.MakeKey(k.User, 0, k.Kind())
	}
	// All versions in the file are too new: the key is after them.
	i.seek = append(append(i.seek[:0], k.User...), 0)
	return base.SearchKey(i.seek, base.MaxSeqNum)
}
