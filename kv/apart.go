package kv

import (
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/values"
)

// Blob values are found in two steps. A table or memtable has a handle; a blob file of the same version, or one that
// the memtable holds, has the value. Lookups of less than the value (its size, or whether it exists) end at the
// handle. So do those that a tombstone, an expiry or a newer version answers.

// answerApart is answer for an entry with a handle. If the entry is visible and the lookup wants its value, it reads
// the value and answers with it.
func (l *lookup) answerApart(stored []byte, trailer base.Trailer) (done bool, err error) {
	h, expiry, err := values.HandleOf(l.key, stored, trailer.Kind())
	if err != nil {
		return false, err
	}
	if trailer.SeqNum() < l.cover || trailer.Kind().Expires() && expiry <= l.d.clock.now() {
		return l.answer(nil, base.MakeTrailer(trailer.SeqNum(), base.KindDelete)), nil
	}
	if !l.chain.begun && (l.stream != nil || !l.want || l.sizeOnly) {
		if l.stream != nil {
			*l.stream = h
		}
		l.found, l.expiry, l.skipped, l.size = true, expiry, true, int(h.Size)
		return true, nil
	}
	if l.explain != nil && l.explainBlob(h) {
		return l.answer(nil, base.MakeTrailer(trailer.SeqNum(), base.KindSet)), nil
	}
	var c *counters.Blobs
	if l.stripe != nil {
		c = &l.stripe.Blobs
	}
	dst, err := l.d.values.AppendCached(l.dst, l.version, l.key, h, c)
	if err != nil {
		return false, err
	}
	value := dst[len(l.dst):]
	l.dst = dst // as of an operand, it stays where it is
	if !l.chain.begun {
		l.expiry = expiry
	}
	return l.answer(value, base.MakeTrailer(trailer.SeqNum(), base.KindSet)), nil
}
