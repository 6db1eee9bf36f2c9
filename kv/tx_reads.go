package kv

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/version"
)

// A readSet is what a transaction has read: keys, exactly, and ranges of keys.
type readSet struct {
	keys   map[string]struct{}
	spans  []version.Span
	merged int // so many of the spans are sorted and apart from each other
	limit  int // of the memory, in bytes
	err    error
	db     *DB

	keyBytes, spanBytes int // memory

	// since is the write up to which the set was found valid.
	since base.SeqNum
}

// keptPerKey is what a key or a span takes beside its bytes.
const keptPerKey = 48

func (r *readSet) empty() bool { return len(r.keys)+len(r.spans) == 0 }

// addKey notes that a key was looked up. It returns ErrTooLarge if the set would
// be.
func (r *readSet) addKey(key []byte) error {
	if r.err != nil {
		return r.err
	}
	if _, ok := r.keys[string(key)]; ok {
		return nil
	}
	if r.keys == nil {
		r.keys = map[string]struct{}{}
	}
	r.keyBytes += keptPerKey + len(key)
	r.keys[string(key)] = struct{}{}
	r.check()
	return r.err
}

// addSpan notes that all keys of a span were looked for. It copies the bounds. That
// the set is too large is returned by the next addKey.
func (r *readSet) addSpan(s version.Span) {
	if r.err != nil || s.Hi != nil && bytes.Compare(s.Lo, s.Hi) >= 0 {
		return
	}
	if n := len(r.spans); n > 0 && r.spans[n-1].Contains(s) {
		return
	}
	s = version.Span{Lo: append([]byte{}, s.Lo...), Hi: bytes.Clone(s.Hi)}
	r.spans = append(r.spans, s)
	r.spanBytes += spanMemory(s)
	if len(r.spans) > 2*r.merged+16 {
		r.merge()
	}
	r.check()
}

// check empties the set if it has become too large.
func (r *readSet) check() {
	if size := r.keyBytes + r.spanBytes; r.err == nil && size > r.limit {
		r.err = fmt.Errorf("%w: what the transaction has read takes %d bytes to remember, the limit is %d: read less in one transaction", ErrTooLarge, size, r.limit)
		r.keys, r.spans, r.merged = nil, nil, 0
	}
}

// merge sorts the spans and joins those that meet. Spans are merged each time
// their number has doubled: O(log n) for each.
func (r *readSet) merge() {
	slices.SortFunc(r.spans, func(a, b version.Span) int { return bytes.Compare(a.Lo, b.Lo) })
	out := r.spans[:0]
	r.spanBytes = 0
	for _, s := range r.spans {
		if n := len(out); n > 0 && rangedel.CompareEnds(out[n-1].Hi, s.Lo) >= 0 {
			if rangedel.CompareEnds(s.Hi, out[n-1].Hi) > 0 {
				out[n-1].Hi = s.Hi
			}
			continue
		}
		out = append(out, s)
	}
	clear(r.spans[len(out):])
	r.spans, r.merged = out, len(out)
	for _, s := range out {
		r.spanBytes += spanMemory(s)
	}
}

// spanMemory returns what a span takes in bytes.
func spanMemory(s version.Span) int { return keptPerKey + len(s.Lo) + len(s.Hi) }
