package sstable

import (
	"errors"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/offheap"
)

// A filterData owns the bytes of a decoded filter, which are outside the Go heap and go when
// no reader has the filter any more.
type filterData struct{ memory *offheap.Region }

// decodeFilter decodes the filter out of data, which it copies. One of prefixes alone is
// checked, and kept if there is an extractor to ask it with.
func (r *Reader) decodeFilter(data []byte) error {
	kept := r.FilterFits()
	owner := &filterData{}
	if kept {
		owner.memory = offheap.NewShared(owner, len(data))
		copy(owner.memory.Bytes(), data)
		data = owner.memory.Bytes()
	}
	filter, err := filterpolicy.DecodeWith(r.policy, r.props.FilterFamily, data)
	if kept && err == nil {
		r.filter, r.filterData = filter, owner
	}
	return err
}

// FilterFits reports whether the filter, if there is one, can be asked once it is in memory:
// one of prefixes alone needs its extractor.
func (r *Reader) FilterFits() bool { return !r.prefixOnly || r.prefix != nil }

// WithoutFilter returns a reader of the same open file whose lookups ask no filter. Closing
// one of the two closes both.
func (r *Reader) WithoutFilter() *Reader {
	other := *r
	other.filter, other.filterData = nil, nil
	return &other
}

// WithFilter reads the filter, and returns a reader of the same open file that has it. If the
// filter is damaged, or not usable for another reason, the reader returned has a FilterError and
// no filter, as if the filter had been read when the file was opened. The error says that the
// filter cannot be read now.
func (r *Reader) WithFilter() (*Reader, error) {
	buf := readBuffers.get()
	defer readBuffers.put(buf)
	other := *r
	data, err := r.readFilter(buf)
	switch {
	case err == nil:
		other.filterErr = other.decodeFilter(data)
	case errors.Is(err, base.ErrCorruption):
		other.filterErr = err
	default:
		return nil, err
	}
	return &other, nil
}

// readFilter reads the filter's bytes into buf.
func (r *Reader) readFilter(buf *[]byte) ([]byte, error) {
	h := r.props.filter
	if end := h.offset + h.length + trailerSize; h.length >= uint64(r.size) || end < h.offset || end > uint64(r.size) {
		return nil, r.corrupt(r.size-footerSize, "filter block", errOutside)
	}
	data, c, err := r.readStored(buf, filterBlock, h.offset, int(h.length)+trailerSize, new(Probe))
	if err == nil && c != NoCompression {
		err = r.corrupt(int64(h.offset), filterBlock.String(), errTailCompressed)
	}
	return data, err
}
