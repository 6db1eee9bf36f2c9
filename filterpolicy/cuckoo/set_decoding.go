package cuckoo

import (
	"encoding/binary"
	"slices"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
)

// load keeps the cells in payload.
func (s *Set) load(payload []byte) error {
	in := input{payload}
	head := in.take(headLen)
	if head == nil {
		return errShort
	}
	tables := binary.LittleEndian.Uint32(head[4:])
	d := Set{options: layout{head[0], head[1], head[2]}}
	if shapeOf(uint32(d.options.bits), uint32(d.options.slots)) == nil || d.options.grow > maxGrow || head[3] > 1 ||
		tables == 0 || tables > maxBits {
		return frame.Corruptf("no cuckoo set has parameters % x", head)
	}
	for range tables {
		l, err := d.options.decodeLayer(&in)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(d.layers, func(other layer) bool { return other.bits == l.bits }) {
			return frame.Corruptf("two tables have fingerprints of %d bits", l.bits)
		}
		d.layers = append(d.layers, l)
	}
	if head[3] == 1 {
		if err := d.decodeGuard(&in); err != nil {
			return err
		}
	}
	if len(in.rest) != 0 {
		return frame.Corruptf("%d bytes follow the set", len(in.rest))
	}
	*s = d
	return nil
}

var errShort = frame.Corruptf("the set is cut short")

// An input is what is left to decode.
type input struct{ rest []byte }

// take returns the next n bytes, nil if there are fewer.
func (in *input) take(n uint64) []byte {
	if n > uint64(len(in.rest)) {
		return nil
	}
	b := in.rest[:n:n]
	in.rest = in.rest[n:]
	return b
}

// records returns the next n records of size bytes each, false if there are fewer.
func (in *input) records(n, size uint64) ([]byte, bool) {
	if n > uint64(len(in.rest))/size {
		return nil, false
	}
	return in.take(n * size), true
}

func (o layout) decodeLayer(in *input) (layer, error) {
	head := in.take(layerLen)
	if head == nil {
		return layer{}, errShort
	}
	le := binary.LittleEndian
	buckets, bits, extras := le.Uint64(head), le.Uint32(head[36:]), le.Uint64(head[40:])
	shape := shapeOf(bits, uint32(o.slots))
	if shape == nil || bits < uint32(o.bits) || buckets == 0 || buckets%2 != 0 {
		return layer{}, frame.Corruptf("no table has %d buckets of %d fingerprints of %d bits", buckets, o.slots,
			bits)
	}
	// A bucket has at least a byte, so that size does not wrap.
	if buckets > uint64(len(in.rest)) || shape.size(buckets) > uint64(len(in.rest)) {
		return layer{}, errShort
	}
	cells := in.take(shape.size(buckets))
	l := layer{table: table{shape, cells, buckets, bits - uint32(o.bits)}, used: le.Uint64(head[8:]),
		groups: le.Uint64(head[16:])}
	if err := l.decodeVictim(le.Uint64(head[24:]), uint64(le.Uint32(head[32:]))); err != nil {
		return layer{}, err
	}
	if err := l.check(); err != nil {
		return layer{}, err
	}
	records, ok := in.records(extras, extraLen)
	if !ok {
		return layer{}, errShort
	}
	return l, l.decodeExtra(records)
}

func (l *layer) decodeVictim(bucket, fingerprint uint64) error {
	switch {
	case fingerprint == 0 && bucket == 0:
	case fingerprint == 0 || fingerprint > l.values || bucket >= l.buckets:
		return frame.Corruptf("fingerprint %d of bucket %d is no victim of %d buckets", fingerprint, bucket,
			l.buckets)
	default:
		l.victim = place{fingerprint, bucket, l.other(fingerprint, bucket)}
	}
	return nil
}

// check compares the cells with what the head says of them. The number of classes is only checked to be possible: it
// serves the estimate of the rate, and to count them would take as long as to add them.
func (l *layer) check() error {
	used := l.buckets * l.slots
	for bucket := range l.buckets {
		used -= l.countIn(bucket, 0)
	}
	keys := l.len() - l.extras
	if used != l.used || l.groups > keys || l.groups*(2*l.slots+1) < keys {
		return frame.Corruptf("%d slots are in use by %d classes, the set says %d", used, l.groups, l.used)
	}
	end := l.buckets * l.slots * l.bits
	spare := l.cells[end/8:]
	stray := spare[0] >> (end % 8)
	for _, b := range spare[1:] {
		stray |= b
	}
	if stray != 0 {
		return frame.Corruptf("bits are set after the last slot")
	}
	return nil
}

// decodeExtra reads copies kept aside. A class of them must be in the table, or Contains would not find it.
func (l *layer) decodeExtra(records []byte) error {
	last := class{}
	for ; len(records) != 0; records = records[extraLen:] {
		c := class{uint64(binary.LittleEndian.Uint32(records[8:])), binary.LittleEndian.Uint64(records)}
		copies := binary.LittleEndian.Uint32(records[12:])
		if c.fingerprint == 0 || c.fingerprint > l.values || c.bucket >= l.buckets || c.compare(last) <= 0 {
			return frame.Corruptf("fingerprint %d of bucket %d is out of bounds or order", c.fingerprint, c.bucket)
		}
		p := place{c.fingerprint, c.bucket, l.other(c.fingerprint, c.bucket)}
		if p.class() != c || !l.holds(p) || copies == 0 {
			return frame.Corruptf("fingerprint %d of bucket %d cannot have %d more copies", c.fingerprint,
				c.bucket, copies)
		}
		if l.extra == nil {
			l.extra = map[class]uint32{}
		}
		l.extra[c] = copies
		l.extras += uint64(copies)
		last = c
	}
	return nil
}

func (s *Set) decodeGuard(in *input) error {
	head := in.take(8)
	if head == nil {
		return errShort
	}
	hashes := binary.LittleEndian.Uint64(head)
	records, ok := in.records(hashes, guardianLen)
	if !ok {
		return errShort
	}
	s.guard = make(guard, hashes)
	last, keys := uint64(0), 0
	for ; len(records) != 0; records = records[guardianLen:] {
		h, copies := binary.LittleEndian.Uint64(records), binary.LittleEndian.Uint32(records[8:])
		if h <= last && len(s.guard) != 0 || copies == 0 {
			return frame.Corruptf("the guard's hash %#x is out of order or there %d times", h, copies)
		}
		s.guard[h] = copies
		keys += int(copies)
		last = h
	}
	if keys != s.Len() {
		return frame.Corruptf("the guard knows %d keys, the tables hold %d", keys, s.Len())
	}
	return nil
}
