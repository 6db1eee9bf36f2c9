package sstable

import (
	"bytes"
	"errors"
	"runtime"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/offheap"
)

// A filterData owns the bytes of a decoded filter, which are outside the Go heap and go when
// no reader has the filter any more.
type filterData struct{ memory *offheap.Region }

// keepFilter copies the bytes of a filter out of the heap.
func keepFilter(data []byte) (*filterData, []byte) {
	owner := &filterData{}
	owner.memory = offheap.NewShared(owner, len(data))
	copy(owner.memory.Bytes(), data)
	return owner, owner.memory.Bytes()
}

// openFilters takes the filters out of the tail. Where there is no room for both, that of lookups goes first.
func (r *Reader) openFilters(tail []byte, start int64, room func(bytes int64) bool) {
	p := r.props
	point, ranges := r.filterSizes()
	fits := func(n int64) bool { return room == nil || room(n) }
	all := fits(point + ranges)
	if p.filter.length > 0 && (all || fits(point)) {
		var data []byte
		if data, r.filterErr = r.tailBlock(tail, start, p.filter, filterBlock.String()); r.filterErr == nil {
			r.filterErr = r.decodeFilter(data)
		}
	}
	if p.rangeFilter.length > 0 && all {
		var data []byte
		data, r.rangesErr = r.tailBlock(tail, start, p.rangeFilter, rangeFilterBlock.String())
		if r.rangesErr == nil {
			r.rangesErr = r.decodeRanges(data)
		}
	}
}

// filterSizes returns what the filters take that can be asked once they are in memory.
func (r *Reader) filterSizes() (point, ranges int64) {
	if r.filterFits() {
		point = int64(r.props.filter.length)
	}
	return point, int64(r.props.rangeFilter.length)
}

// decodeFilter decodes the filter out of data, which it copies. One of prefixes alone is
// checked, and kept if there is an extractor to ask it with.
func (r *Reader) decodeFilter(data []byte) error {
	kept := r.filterFits()
	var owner *filterData
	if kept {
		owner, data = keepFilter(data)
	}
	filter, err := filterpolicy.DecodeWith(r.policy, r.props.FilterFamily, data)
	if kept && err == nil {
		r.filter, r.filterData, r.salt = filter, owner, 0
		if s, ok := filter.(*filterpolicy.SaltedFilter); ok && s.Secret != 0 {
			r.filter, r.salt = s.Of, s.Secret
		}
	}
	return err
}

// decodeRanges decodes the range filter out of data, which it copies.
func (r *Reader) decodeRanges(data []byte) error {
	owner, data := keepFilter(data)
	filter, err := filterpolicy.DecodeRangeWith(r.rangePolicy, r.props.RangeFilterFamily, data)
	if err == nil {
		r.ranges, r.rangesData = filter, owner
	}
	return err
}

// filterFits reports whether the filter, if there is one, can be asked once it is in memory:
// one of prefixes alone needs its extractor.
func (r *Reader) filterFits() bool { return !r.prefixOnly || r.prefix != nil }

// SkippedFilters returns the bytes of the filters that are only on disk, without those that are known to be unusable.
func (r *Reader) SkippedFilters() (bytes int64) {
	point, ranges := r.filterSizes()
	if r.filter == nil && r.filterErr == nil {
		bytes += point
	}
	if r.ranges == nil && r.rangesErr == nil {
		bytes += ranges
	}
	return bytes
}

// SetUnusable sets the reasons why filters are not usable, as another reader of the file has found; nil: none. r then
// need not read them. It must be called before r is shared.
func (r *Reader) SetUnusable(filter, ranges error) {
	if r.filter == nil && r.filterErr == nil {
		r.filterErr = filter
	}
	if r.ranges == nil && r.rangesErr == nil {
		r.rangesErr = ranges
	}
}

// WithoutFilters returns a reader of the same open file that asks no filter. Closing one of the two closes both.
func (r *Reader) WithoutFilters() *Reader {
	other := *r
	other.filter, other.filterData = nil, nil
	other.ranges, other.rangesData = nil, nil
	return &other
}

// WithFilters reads the filters that are not in memory, unless they are known not to be usable, and returns
// a reader of the same open file that has them. If one is damaged, or not usable for another reason, the
// reader returned has a FilterError, or a RangeFilterError, and not that filter, as if it had been read when
// the file was opened. The error says that a filter cannot be read now.
func (r *Reader) WithFilters() (*Reader, error) {
	other := *r
	var err error
	if r.props.filter.length > 0 && r.filter == nil && r.filterErr == nil {
		if other.filterErr, err = r.reload(filterBlock, r.props.filter, other.decodeFilter); err != nil {
			return nil, err
		}
	}
	if r.props.rangeFilter.length > 0 && r.ranges == nil && r.rangesErr == nil {
		other.rangesErr, err = r.reload(rangeFilterBlock, r.props.rangeFilter, other.decodeRanges)
		if err != nil {
			return nil, err
		}
	}
	return &other, nil
}

// reload reads a filter's bytes and decodes them. It returns why the filter is not usable, or an error
// that says that it cannot be read now.
func (r *Reader) reload(kind blockKind, h handle, decode func(data []byte) error) (unusable, err error) {
	buf := blockBuffers.get()
	defer blockBuffers.put(buf)
	data, err := r.readFilter(buf, kind, h)
	switch {
	case err == nil:
		return decode(data), nil
	case errors.Is(err, base.ErrCorruption):
		return err, nil
	}
	return nil, err
}

// readFilter reads a filter's bytes into buf.
func (r *Reader) readFilter(buf *[]byte, kind blockKind, h handle) ([]byte, error) {
	if end := h.offset + h.length + trailerSize; h.length >= uint64(r.size) || end < h.offset || end > uint64(r.size) {
		return nil, r.corrupt(r.size-footerSize, kind.String()+" block", errOutside)
	}
	data, c, err := r.readStored(buf, kind, h.offset, int(h.length)+trailerSize, new(Probe))
	if err == nil && c != NoCompression {
		err = r.corrupt(int64(h.offset), kind.String(), errTailCompressed)
	}
	return data, err
}

// HasRangeFilter reports whether MayContainRange asks a filter.
func (r *Reader) HasRangeFilter() bool { return r.ranges != nil }

// CanHaveRangeFilter reports whether the file has a range filter, in memory or not.
func (r *Reader) CanHaveRangeFilter() bool { return r.props.rangeFilter.length > 0 }

// MayContainRange reports whether the file may have point entries, tombstones among them, with user
// keys of [lo, hi); nil is no bound. False is certain.
func (r *Reader) MayContainRange(lo, hi []byte) bool {
	may, _ := r.AskRange(lo, hi)
	return may
}

// AskRange is MayContainRange, and reports whether the range filter was asked. It is not asked if the file's first and
// last key decide: for ranges that have one of them, or are before or after both.
func (r *Reader) AskRange(lo, hi []byte) (may, asked bool) {
	p := r.props
	if p.Entries > 0 && (p.Smallest == nil || p.Largest == nil) {
		return true, false // the file does not say where its keys end
	}
	first := lo == nil || bytes.Compare(lo, p.Smallest) <= 0 // the first key is in the range, or after it
	last := hi == nil || bytes.Compare(p.Largest, hi) < 0    // the last key is in the range, or before it
	switch {
	case p.Entries == 0 || lo != nil && hi != nil && bytes.Compare(lo, hi) >= 0:
		return false, false
	case first:
		return hi == nil || bytes.Compare(p.Smallest, hi) < 0, false
	case last:
		return bytes.Compare(lo, p.Largest) <= 0, false
	case r.ranges == nil:
		return true, false
	}
	return r.askRanges(lo, hi), true
}

// askRanges asks the range filter, which is there.
func (r *Reader) askRanges(lo, hi []byte) bool {
	maybe := r.ranges.MayContainRange(lo, hi)
	runtime.KeepAlive(r)
	return maybe
}
