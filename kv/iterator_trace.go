package kv

import (
	"bytes"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/lookupsample"
	"github.com/siftkv/siftkv/internal/lookuptrace"
)

// A scan, for a tracer and the sample of Options.LookupSample, is what an iterator does
// from one seek to the next. Without them a seek only asks for them, and other moves only count.

// A tracedScan is a scan that a tracer or the sample wants.
type tracedScan struct {
	tracer   *lookuptrace.Recorder // nil: it does not want it
	sampled  bool
	hash     uint64 // of where it began
	start    []byte
	bounded  bool // by start: it did not begin at the first key, or the last
	backward bool
}

// begin is seekable for a move that begins a scan: at a key, or at a bound if that is nil.
func (i *Iterator) begin(key []byte, backward bool) bool {
	c := i.c
	if c != nil {
		if c.scanning || c.db.watch.most.Load() > 0 {
			c.beginScan(key, backward)
		}
		c.returned, c.turned = 0, 0
	}
	return i.seekable()
}

// came counts an entry, if the iterator reached one.
func (i *cursor) came(ok bool) bool {
	if ok {
		i.returned++
	}
	return ok
}

// beginScan ends the scan before, and begins one if a tracer or the sample wants it.
func (i *cursor) beginScan(key []byte, backward bool) {
	if i.scanning {
		i.endScan()
	}
	if !backward && i.lower != nil && bytes.Compare(key, i.lower) < 0 {
		key = i.lower
	}
	if backward && i.upper != nil && (key == nil || bytes.Compare(key, i.upper) > 0) {
		key = i.upper
	}
	hash := filterpolicy.Hash(key)
	w := &i.db.watch
	if !w.wants(hash) {
		return
	}
	s := &i.parts.scan
	if s.tracer = w.tracer.Load(); s.tracer != nil && !s.tracer.Wants(hash) {
		s.tracer = nil
	}
	s.sampled = w.samples(hash)
	s.hash, s.backward, s.bounded = hash, backward, key != nil
	s.start = append(s.start[:0], key...)
	i.scanning = true
}

// endScan writes the scan down, unless it has failed.
func (i *cursor) endScan() {
	s := &i.parts.scan
	t := s.tracer
	i.scanning, s.tracer = false, nil
	if i.err != nil {
		return
	}
	end := i.upper
	if s.backward {
		end = i.lower
	}
	if t != nil {
		t.RecordScan(&lookuptrace.Scan{
			Start:   lookuptrace.Bound{Set: s.bounded, Key: s.start},
			End:     lookuptrace.Bound{Set: end != nil, Key: end},
			Entries: i.returned, Backward: s.backward, Ended: !i.valid, KeysOnly: i.keysOnly,
		}, s.hash)
	}
	if s.sampled {
		start := s.start
		if !s.bounded {
			start = nil
		}
		i.db.watch.sampler.Scan(&lookupsample.Scan{Start: start, End: end, Entries: i.returned, Backward: s.backward,
			Ended: !i.valid}, s.hash)
	}
}
