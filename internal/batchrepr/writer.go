package batchrepr

import (
	"encoding/binary"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
)

// HeaderSize is the size of a record without entries.
const HeaderSize = 8 + 4

// A Writer makes a record, one entry at a time. The zero Writer has none.
type Writer struct {
	RangeDeletes int               // among the entries
	Features     manifest.Features // of the store, that the entries use

	data  []byte // with room for the header, unless there are no entries
	count uint32
	given bool // data is in use elsewhere too
}

// A Mark is a place between two entries of a Writer.
type Mark struct {
	Count uint32 // entries before it
	at    int
}

// Len returns the number of entries.
func (w *Writer) Len() int { return int(w.count) }

// Size returns the size of the record in bytes.
func (w *Writer) Size() int { return len(w.data) }

// Cap returns the size of the record that the Writer has memory for.
func (w *Writer) Cap() int { return cap(w.data) }

// Reset removes all entries and keeps the memory, unless that was given away.
func (w *Writer) Reset() {
	data := w.data[:0]
	if w.given {
		data = nil
	}
	*w = Writer{data: data}
}

// Give notes that the entries of the record stay in use elsewhere: they are never overwritten.
func (w *Writer) Give() { w.given = true }

// Add appends an entry; its value is value followed by more.
func (w *Writer) Add(kind base.Kind, key, value []byte, more ...byte) {
	w.grow(entryHeader + len(key) + len(value) + len(more))
	w.data = append(w.data, byte(kind))
	w.data = binary.AppendUvarint(w.data, uint64(len(key)))
	w.data = append(w.data, key...)
	if kind != base.KindDelete {
		w.data = binary.AppendUvarint(w.data, uint64(len(value)+len(more)))
		w.data = append(append(w.data, value...), more...)
	}
	w.count++
	w.Features |= Features(kind)
	if kind == base.KindRangeDelete {
		w.RangeDeletes++
	}
}

// Append appends the entries of o, which may be w itself.
func (w *Writer) Append(o *Writer) {
	if o.count == 0 {
		return
	}
	entries := o.data[HeaderSize:]
	w.grow(len(entries))
	w.data = append(w.data, entries...)
	w.count += o.count
	w.RangeDeletes += o.RangeDeletes
	w.Features |= o.Features
}

// entryHeader is the most that an entry takes in addition to its key and its value.
const entryHeader = 1 + 2*binary.MaxVarintLen32

// grow makes room for n bytes more, and for the header. It doubles what is there, and leaves the operating system to
// supply the pages as they are written: append would copy a large record again and again, and clear what it takes.
func (w *Writer) grow(n int) {
	if len(w.data) == 0 {
		n += HeaderSize
	}
	if n > cap(w.data)-len(w.data) {
		next := make([]byte, len(w.data), max(len(w.data)+n, 2*cap(w.data)))
		copy(next, w.data)
		w.data = next
	}
	if len(w.data) == 0 {
		w.data = w.data[:HeaderSize]
	}
}

// Seal writes the header and returns the record, which the next change invalidates. There must be entries.
func (w *Writer) Seal(seq base.SeqNum) []byte {
	binary.LittleEndian.PutUint64(w.data, uint64(seq))
	binary.LittleEndian.PutUint32(w.data[8:], w.count)
	return w.data
}

// Record returns the record as Seal last did.
func (w *Writer) Record() []byte { return w.data }

// End returns the place after the last entry.
func (w *Writer) End() Mark { return Mark{Count: w.count, at: len(w.data)} }

// After returns a Reader of the entries after m, numbered from seq.
func (w *Writer) After(m Mark, seq base.SeqNum) Reader {
	return Reader{data: w.data[max(m.at, HeaderSize):], seq: seq, left: w.count - m.Count}
}

// Features returns which features of the store an entry of this kind uses.
func Features(kind base.Kind) manifest.Features {
	switch kind {
	case base.KindMerge:
		return manifest.FeatureMerge
	case base.KindSetTTL:
		return manifest.FeatureTTL
	case base.KindSetSeparated:
		return manifest.FeatureSeparatedInLogs
	case base.KindSetTTLSeparated:
		return manifest.FeatureSeparatedInLogs | manifest.FeatureTTL
	}
	return 0
}
