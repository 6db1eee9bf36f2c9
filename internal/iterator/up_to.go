package iterator

import "github.com/siftkv/siftkv/internal/base"

// upTo is a sequence without the entries that are newer than a sequence number.
type upTo struct {
	Iter
	last base.SeqNum
}

// UpTo returns the entries of it that are not newer than last.
func UpTo(it Iter, last base.SeqNum) Iter { return &upTo{it, last} }

func (u *upTo) First() bool                    { return u.forward(u.Iter.First()) }
func (u *upTo) Next() bool                     { return u.forward(u.Iter.Next()) }
func (u *upTo) SeekGE(k base.InternalKey) bool { return u.forward(u.Iter.SeekGE(k)) }
func (u *upTo) Last() bool                     { return u.backward(u.Iter.Last()) }
func (u *upTo) Prev() bool                     { return u.backward(u.Iter.Prev()) }
func (u *upTo) SeekLT(k base.InternalKey) bool { return u.backward(u.Iter.SeekLT(k)) }

func (u *upTo) forward(ok bool) bool {
	for ok && u.Key().SeqNum() > u.last {
		ok = u.Iter.Next()
	}
	return ok
}

func (u *upTo) backward(ok bool) bool {
	for ok && u.Key().SeqNum() > u.last {
		ok = u.Iter.Prev()
	}
	return ok
}
