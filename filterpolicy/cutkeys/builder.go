package cutkeys

import (
	"encoding/binary"
	"math/bits"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
)

// A Builder collects keys, cut to the bytes that their codes may need, and turns them into a filter. It is for one
// goroutine at a time. What it holds until Finish is some 4 + m bytes per key, besides one key.
type Builder struct {
	extra   int
	records []byte // keys but the last: see appendRecord
	last    []byte
	shared  int // bytes that last has in common with the key before it
	prefix  int // bytes that all keys have in common
	keys    uint64
	falling bool // a key was below the one before it
	large   bool // too much would be kept of the keys; records are then empty
}

// AddKey adds a key, which must not be below the one before it. A key equal to the one before it is free.
func (b *Builder) AddKey(key []byte) {
	if b.keys == 0 {
		b.last, b.prefix = append(b.last[:0], key...), min(len(key), lonePrefix)
		b.keys = 1
		return
	}
	n := commonBytes(b.last, key)
	if n == len(key) || n < len(b.last) && key[n] < b.last[n] {
		b.falling = b.falling || n < len(b.last)
		return
	}
	b.appendRecord(max(b.shared, n))
	b.last, b.shared = append(b.last[:n], key[n:]...), n
	b.prefix = min(b.prefix, n)
	b.keys++
}

// lonePrefix is the bytes of a filter's only key that are taken for a prefix.
const lonePrefix = 64

// appendRecord appends a record of the last key, which has alike bytes in common with its neighbours. The record is the
// number of bytes that it has in common with the key before it, then the bytes that its code may need, since each takes
// at least a bit. If the records become too large, all are dropped.
func (b *Builder) appendRecord(alike int) {
	if b.large {
		return
	}
	tail := b.last[b.shared:min(len(b.last), alike+1+b.extra)]
	b.records = binary.AppendUvarint(b.records, uint64(b.shared))
	b.records = binary.AppendUvarint(b.records, uint64(len(tail)))
	b.records = append(b.records, tail...)
	if uint64(len(b.records)) > fewRecords+b.keys*recordLen {
		b.records, b.large = nil, true
	}
}

// Keys of which so much is kept take more memory than their filter repays: each byte becomes one to 16 bits
// of it, mostly four to eight. The usual takes 3 + m bytes.
const (
	recordLen  = 40        // bytes that are kept per key, on average, at most
	fewRecords = 128 << 10 // and so much for all keys together, such as few long ones
)

// commonBytes returns how many bytes two keys have in common.
func commonBytes(a, b []byte) int {
	n := 0
	for ; n+wordLen <= min(len(a), len(b)); n += wordLen {
		x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:])
		if x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
	}
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// Finish appends the filter to dst and empties the builder for the next file. The filter of no keys says no to
// everything. Finish declines keys that were not in order, and filters of more than 4 GiB, or 256 MiB if an int has 32
// bits. It also declines keys that part late: if their records take more than 128 KiB and 40 bytes per key. dst is then
// returned as it was.
func (b *Builder) Finish(dst []byte) (data []byte, ok bool) {
	defer b.reset()
	if b.falling {
		return dst, false
	}
	d := frame.Description{Keys: b.keys, Params: uint32(b.extra)}
	if b.keys == 0 {
		return d.Seal(dst, len(dst), frame.CutKeys), true
	}
	if b.keys == 1 {
		b.shared = 0
		b.appendRecord(b.prefix)
	} else {
		b.appendRecord(b.shared)
	}
	if b.large {
		return dst, false
	}
	d.Units = (b.keys + groupLen - 1) / groupLen
	if data, ok = b.appendCells(dst, int(d.Units)); !ok {
		return dst, false
	}
	return d.Seal(data, len(dst), frame.CutKeys), true
}

func (b *Builder) reset() {
	*b = Builder{extra: b.extra, records: b.records[:0], last: b.last[:0]}
}

// appendCells appends the cells of a filter of some keys to dst.
func (b *Builder) appendCells(dst []byte, groups int) (data []byte, ok bool) {
	prefix := b.last[:b.prefix]
	symbols, lengths := b.survey()
	w := writer{data: dst, marks: len(dst), groups: len(dst) + groups*wordLen, streams: len(dst) + 2*groups*wordLen}
	w.data = append(w.data, make([]byte, 2*groups*wordLen)...)
	alphabetBytes := appendAlphabet(nil, symbols, lengths)
	var letters alphabet
	letters.load(alphabetBytes)
	b.write(&w, &letters)
	if w.overrun {
		return dst, false
	}
	data = append(w.data, make([]byte, wordLen)...)
	data = append(data, alphabetBytes...)
	data = append(data, prefix...)
	data = binary.LittleEndian.AppendUint32(data, uint32(len(alphabetBytes)))
	return binary.LittleEndian.AppendUint32(data, uint32(len(prefix))), true
}

// survey returns the symbols of the keys and the lengths of their codes. Those count that are where a key parts
// from the one before it, and next to it.
func (b *Builder) survey() (symbols []int, lengths []byte) {
	var c census
	for r := (reader{left: b.records}); r.next(); {
		tail := r.tail[max(0, b.prefix-r.shared):]
		for i, x := range tail {
			c.occurs(x)
			if i < weighed {
				c[int(x)+1] += countOne
			}
		}
		if len(tail) < weighed {
			c[0] += countOne
		}
	}
	symbols = c.symbols()
	return symbols, c.lengths(symbols)
}

// weighed is how many symbols of a key count.
const weighed = 2

// A reader goes through records.
type reader struct {
	left   []byte
	shared int
	tail   []byte
}

func (r *reader) next() bool {
	if len(r.left) == 0 {
		return false
	}
	r.shared = r.uvarint()
	n := r.uvarint()
	r.tail, r.left = r.left[:n], r.left[n:]
	return true
}

// uvarint is binary.Uvarint for numbers that mostly have one byte.
func (r *reader) uvarint() int {
	if x := r.left[0]; x < 0x80 {
		r.left = r.left[1:]
		return int(x)
	}
	x, n := binary.Uvarint(r.left)
	r.left = r.left[n:]
	return int(x)
}
