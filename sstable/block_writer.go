package sstable

import (
	"encoding/binary"
	"math/bits"

	"github.com/siftkv/siftkv/internal/base"
)

// A blockWriter builds one block after another. Call order: add* finish.
type blockWriter struct {
	restartInterval int
	hashIndex       bool

	buf      []byte
	restarts []uint32
	hashes   []keyHash
	n        int // entries in this block
}

// A keyHash is a distinct user key of the block: its hash and where it starts.
type keyHash struct {
	hash    uint32
	restart uint32
}

// add appends an entry. Keys must ascend; hash is the user key's, shared is how many
// bytes it has in common with that of the entry added before, in this block or
// another, and again says that it is the same.
func (w *blockWriter) add(k base.InternalKey, value []byte, hash uint64, shared int, again bool) {
	if w.n%w.restartInterval == 0 {
		w.restarts = append(w.restarts, uint32(len(w.buf)))
		shared = 0
	}
	if !again || w.n == 0 {
		w.hashes = append(w.hashes, keyHash{hash: uint32(hash), restart: uint32(len(w.restarts) - 1)})
	}
	w.buf = appendEntryHeader(w.buf, shared, len(k.User)-shared, len(value), k.Trailer)
	w.buf = append(w.buf, k.User[shared:]...)
	w.buf = append(w.buf, value...)
	w.n++
}

// appendEntryHeader appends four uvarints, the first three mostly of one byte each.
func appendEntryHeader(dst []byte, shared, unshared, valueLen int, t base.Trailer) []byte {
	if shared|unshared|valueLen < 0x80 {
		dst = append(dst, byte(shared), byte(unshared), byte(valueLen))
	} else {
		dst = binary.AppendUvarint(dst, uint64(shared))
		dst = binary.AppendUvarint(dst, uint64(unshared))
		dst = binary.AppendUvarint(dst, uint64(valueLen))
	}
	return binary.AppendUvarint(dst, uint64(t))
}

// commonPrefix returns how many bytes a and b begin with in common.
func commonPrefix(a, b []byte) int {
	n, m := 0, min(len(a), len(b))
	for ; n+8 <= m; n += 8 {
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
	}
	for n < m && a[n] == b[n] {
		n++
	}
	return n
}

func (w *blockWriter) empty() bool { return w.n == 0 }

// size returns the size that finish would give.
func (w *blockWriter) size() int {
	return len(w.buf) + 4*len(w.restarts) + w.numBuckets() + blockFooterSize
}

// numBuckets is three quarters full: fewer buckets collide more and send lookups
// to the binary search, more cost space in every block.
func (w *blockWriter) numBuckets() int {
	if !w.hashIndex || len(w.restarts) > maxRestarts || len(w.hashes) > 1<<15 {
		return 0
	}
	return (len(w.hashes)*4 + 2) / 3
}

// finish returns the block and makes the writer ready for the next one. The
// bytes are valid until the next add.
func (w *blockWriter) finish() []byte {
	nBuckets := w.numBuckets()
	for _, r := range w.restarts {
		w.buf = binary.LittleEndian.AppendUint32(w.buf, r)
	}
	w.appendBuckets(nBuckets)
	w.buf = binary.LittleEndian.AppendUint16(w.buf, uint16(nBuckets))
	w.buf = binary.LittleEndian.AppendUint32(w.buf, uint32(len(w.restarts)))
	data := w.buf
	w.buf, w.restarts, w.hashes, w.n = w.buf[:0], w.restarts[:0], w.hashes[:0], 0
	return data
}

func (w *blockWriter) appendBuckets(n int) {
	at := len(w.buf)
	for range n {
		w.buf = append(w.buf, bucketEmpty)
	}
	buckets := w.buf[at:]
	if n == 0 {
		return
	}
	for _, h := range w.hashes {
		b := &buckets[bucketOf(uint64(h.hash), n)]
		switch *b {
		case bucketEmpty, uint8(h.restart):
			*b = uint8(h.restart)
		default:
			*b = bucketMany
		}
	}
}
