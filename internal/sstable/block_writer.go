package sstable

import (
	"encoding/binary"
	"math"

	"github.com/siftkv/siftkv/internal/base"
)

// A restart interval ends at minRestartBytes: two cache lines, two entries or a few. Large blocks have larger ones, so
// that they have no more than maxIntervals and keep their hash table.
const (
	minRestartBytes = 128
	maxIntervals    = 192
)

// A blockWriter builds one block after another. Call order: add* finish.
type blockWriter struct {
	restartInterval int // entries from one restart to the next, at most
	restartBytes    int // bytes after a restart that begin the next; 0: any number
	hashIndex       bool

	buf      []byte
	restarts []uint32
	hashes   []keyHash
	n        int // entries in this block
	run      int // of them since the last restart
}

// A keyHash is a distinct user key of the block: its hash and where it starts.
type keyHash struct {
	hash    uint64
	restart int
}

// add appends an entry. Keys must ascend. hash is the user key's; shared is the number of bytes that it has in common
// with the one before, in this block or another; again says that both are the same.
func (w *blockWriter) add(k base.InternalKey, value []byte, hash uint64, shared int, again bool) {
	if w.restartsHere() {
		w.restarts = append(w.restarts, uint32(len(w.buf)))
		shared, w.run = 0, 0
	}
	if !again || w.n == 0 {
		w.hashes = append(w.hashes, keyHash{hash: hash, restart: len(w.restarts) - 1})
	}
	w.buf = appendEntryHeader(w.buf, shared, len(k.User)-shared, len(value), k.Trailer)
	w.buf = append(w.buf, k.User[shared:]...)
	w.buf = append(w.buf, value...)
	w.n++
	w.run++
}

// restartsHere reports whether the next entry is a restart. A lookup walks half an interval on average, and every cache
// line of it that is not in the processor's cache costs more than the comparisons: intervals end by bytes, too.
func (w *blockWriter) restartsHere() bool {
	return w.run == w.restartInterval || w.n == 0 ||
		w.restartBytes > 0 && len(w.buf)-int(w.restarts[len(w.restarts)-1]) >= w.restartBytes
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

func (w *blockWriter) empty() bool { return w.n == 0 }

// size returns the size that finish would give.
func (w *blockWriter) size() int {
	return len(w.buf) + w.restartSize()*len(w.restarts) + slotSize*w.numSlots() + blockFooterSize
}

func (w *blockWriter) restartSize() int {
	if len(w.buf) <= math.MaxUint16 {
		return 2
	}
	return 4
}

func (w *blockWriter) numSlots() int {
	n := slotsFor(len(w.hashes))
	if !w.hashIndex || len(w.restarts) > slotRestarts || n > maxSlots {
		return 0
	}
	return n
}

// finish returns the block and makes the writer ready for the next one. The bytes are valid until the next add.
func (w *blockWriter) finish() []byte {
	nSlots, flags := w.numSlots(), uint32(len(w.restarts))|slotsArePaired
	if w.restartSize() == 2 {
		flags |= narrowRestarts
		for _, r := range w.restarts {
			w.buf = binary.LittleEndian.AppendUint16(w.buf, uint16(r))
		}
	} else {
		for _, r := range w.restarts {
			w.buf = binary.LittleEndian.AppendUint32(w.buf, r)
		}
	}
	if nSlots > 0 {
		w.buf = appendSlots(w.buf, w.hashes)
	}
	w.buf = binary.LittleEndian.AppendUint16(w.buf, uint16(nSlots))
	w.buf = binary.LittleEndian.AppendUint32(w.buf, flags)
	data := w.buf
	w.buf, w.restarts, w.hashes, w.n = w.buf[:0], w.restarts[:0], w.hashes[:0], 0
	return data
}
