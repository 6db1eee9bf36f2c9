package sstable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
)

// maxFaults bounds how many faults Verify reports.
const maxFaults = 16

// Verify reads the whole file, past the cache, and checks everything that a lookup relies
// on (see siftkv/sstable), in one pass and with one block and the filter in memory.
func (r *Reader) Verify() error { return r.VerifyEach(nil) }

// VerifyEach is Verify that also shows visit every point entry as the file has it, in order. Slices are valid for one
// call. An error of visit ends the pass and is returned alone.
func (r *Reader) VerifyEach(visit func(k base.InternalKey, value []byte) error) error {
	if r.closed.Load() {
		return ErrClosed
	}
	v := verifier{r: r.inPieces(), again: r, visit: visit, found: newTally()}
	v.memo.ahead.init(r)
	v.tail()
	v.leaves()
	for n := 0; n < r.dataCount && len(v.faults) < maxFaults && v.stopped == nil; n++ {
		v.block(n)
	}
	if v.stopped != nil {
		return v.stopped
	}
	if len(v.faults) == 0 {
		v.properties()
	}
	return errors.Join(v.faults...)
}

type verifier struct {
	r       *Reader
	again   *Reader // of the tail as it is now, with a filter that can be asked
	faults  []error
	visit   func(k base.InternalKey, value []byte) error // may be nil
	stopped error                                        // what visit returned, or why the file could not be read

	data      []byte // of the current block
	memo      leafMemo
	found     tally
	keys      uint64 // distinct user keys
	prefixes  uint64 // that are not the one before
	prefix    []byte // the last one
	after     []byte // buffer of askRanges
	separator []byte // of the block before
	cut       bool   // the block before could not be read
}

// unread notes why a piece is missing: it is damaged or cut off, or reading failed, which says
// nothing about the file and ends the pass.
func (v *verifier) unread(offset int64, what string, err error) {
	switch {
	case errors.Is(err, ErrCorruption), errors.Is(err, ErrNewerFormat), errors.Is(err, io.ErrUnexpectedEOF):
		v.fault(offset, what, err)
	case v.stopped == nil:
		v.stopped = err
	}
}

func (v *verifier) fault(offset int64, what string, err error) {
	if errors.Is(err, ErrCorruption) {
		v.faults = append(v.faults, err)
		return
	}
	v.faults = append(v.faults, v.r.corrupt(offset, what, err))
}

// tail reads the tail from the file again: what the reader keeps of it may be
// older than the damage, and may leave the filter out.
func (v *verifier) tail() {
	r := v.r
	prefix := r.prefix
	if prefix == nil && r.props.FilterPrefix != "" {
		// Another one's name is no error: its prefixes cannot be asked for.
		prefix, _ = filterpolicy.ParsePrefix(r.props.FilterPrefix)
	}
	again, err := NewReader(r.unowned(), r.size, &ReaderOptions{
		Name: r.name, Hint: r.hint, ID: r.id, CacheSize: -1, Prefix: prefix, Filter: r.policy,
		RangeFilter: r.rangePolicy, AnyExpansion: r.expansion,
	})
	if err != nil {
		v.unread(r.size-footerSize, "tail", err)
		return
	}
	v.again = again
	if again.filterErr != nil && !errors.Is(again.filterErr, filterpolicy.ErrUnknownFamily) {
		v.fault(int64(r.props.filter.offset), "filter", again.filterErr)
	}
	if again.rangesErr != nil && !errors.Is(again.rangesErr, filterpolicy.ErrUnknownFamily) {
		v.fault(int64(r.props.rangeFilter.offset), "range filter", again.rangesErr)
	}
}

// leaves reads every index leaf from the file.
func (v *verifier) leaves() {
	for i := range int(v.r.props.IndexLeaves) {
		offset, length := v.r.index.Block(i)
		if _, err := v.r.readBlock(&v.data, indexLeaf, offset, length); err != nil {
			v.unread(int64(offset), "index leaf", err)
		}
	}
}

func (v *verifier) block(n int) {
	r := v.r
	var p Probe
	loc, err := r.locateBlock(n, false, &v.memo, &p)
	if err != nil {
		v.unread(-1, "index", err)
		v.cut = true
		return
	}
	offset, length := r.place(loc)
	data, err := r.readBlock(&v.data, dataBlock, offset, length)
	if err != nil {
		v.unread(int64(offset), "data block", err)
		v.cut = true
		return
	}
	if err := v.blockEntries(viewBlock(data)); err != nil {
		v.fault(int64(offset), fmt.Sprintf("data block %d", n), err)
	}
	if v.separator, err = r.appendSeparator(v.separator[:0], n, false, &v.memo, &p); err != nil {
		v.unread(-1, "index", err)
	}
	if bytes.Compare(v.found.last.User, v.separator) > 0 {
		v.fault(int64(offset), fmt.Sprintf("data block %d", n),
			fmt.Errorf("its last key %q is after its separator %q", v.found.last.User, v.separator))
	}
	v.cut = false
}

// show shows an entry to visit, and reports whether to go on.
func (v *verifier) show(i *blockIter) bool {
	if v.visit != nil {
		v.stopped = v.visit(i.key(), i.value())
	}
	return v.stopped == nil
}

func (v *verifier) blockEntries(b block) error {
	var i blockIter
	i.reset(b)
	firstOfBlock := true
	last := &v.found.last
	for ok := i.first(); ok; ok = i.next() {
		if !v.show(&i) {
			return nil // VerifyEach returns what stopped it
		}
		again := v.found.Entries > 0 && bytes.Equal(i.key().User, last.User)
		if v.found.Entries > 0 && base.Compare(*last, i.key()) >= 0 {
			return fmt.Errorf("%s stands after %s", i.key(), *last)
		}
		if firstOfBlock && v.found.Entries > 0 && !v.cut && !again && bytes.Compare(i.key().User, v.separator) <= 0 {
			return fmt.Errorf("its first key %q is not after the separator %q", i.key().User, v.separator)
		}
		if err := v.entry(b, &i, again); err != nil {
			return err
		}
		firstOfBlock = false
	}
	if i.err == nil && firstOfBlock {
		return errors.New("the block is empty")
	}
	return i.err
}

// entry checks that a lookup of the entry's key would find it, and counts it.
func (v *verifier) entry(b block, i *blockIter, again bool) error {
	if k := i.key().Kind(); k == base.KindRangeDelete || k > base.KindSetTTLSeparated {
		return fmt.Errorf("%s has no place among point entries", i.key())
	}
	if err := checkSpecial(i.key(), i.value()); err != nil {
		return err
	}
	hash := filterpolicy.Hash(i.key().User)
	if err := v.askFilter(i.key().User, hash); err != nil {
		return err
	}
	if !again {
		if err := v.askRanges(i.key().User); err != nil {
			return err
		}
	}
	f, err := b.find(i.key().User, hash, i.key().SeqNum())
	if err != nil || !f.ok || f.trailer != i.key().Trailer {
		return fmt.Errorf("a lookup does not find %s", i.key())
	}
	if !again {
		v.keys++
	}
	v.found.add(i.key(), i.value(), again)
	return nil
}

// askFilter checks that the filter admits a key and its prefix, and counts prefixes.
func (v *verifier) askFilter(user []byte, hash uint64) error {
	r := v.again
	if r.filter == nil {
		return nil
	}
	if !r.passesFilter(user, hash) {
		return fmt.Errorf("the filter denies %q", user)
	}
	if r.prefix == nil {
		return nil
	}
	prefix, ok := r.prefix.Prefix(user)
	if ok && !r.MayContainPrefix(filterpolicy.Hash(prefix)) {
		return fmt.Errorf("the filter denies the prefix %q", prefix)
	}
	if ok && (v.prefixes == 0 || !bytes.Equal(prefix, v.prefix)) {
		v.prefixes++
		v.prefix = append(v.prefix[:0], prefix...)
	}
	return nil
}

// askRanges checks that the range filter admits a key, with the narrowest range that has it.
func (v *verifier) askRanges(user []byte) error {
	r := v.again
	v.after = append(append(v.after[:0], user...), 0)
	if r.ranges != nil && !r.askRanges(user, v.after) {
		return fmt.Errorf("the range filter denies %q", user)
	}
	return nil
}

// filterKeys returns how many keys the filter was built from, false if that is not known:
// there is none, or its extractor is not known.
func (v *verifier) filterKeys() (n uint64, known bool) {
	r := v.again
	switch {
	case r.filter == nil || r.props.FilterPrefix != "" && r.prefix == nil:
		return 0, false
	case r.prefixOnly:
		return v.prefixes, true
	}
	return v.keys + v.prefixes, true
}

// properties holds the counts against what the file says of itself.
func (v *verifier) properties() {
	p, f := v.r.props, &v.found
	fault := func(format string, args ...any) {
		v.fault(v.r.size-footerSize, "properties", fmt.Errorf(format, args...))
	}
	f.RangeDeletes = uint64(v.r.tombstones.Len())
	var known bool
	if f.FilterKeys, known = v.filterKeys(); !known {
		f.FilterKeys = p.FilterKeys
	}
	if p.RangeFilterFamily != "" {
		f.RangeFilterKeys = v.keys
	}
	if p.Overwritten == 0 { // files of earlier versions of this package do not say
		f.Overwritten = 0
	}
	if p.DenseDeletes == 0 {
		f.DenseDeletes = 0
	}
	for _, c := range []struct {
		name        string
		said, found uint64
	}{
		{"entries", p.Entries, f.Entries},
		{"deletes", p.Deletes, f.Deletes},
		{"merge operands", p.Merges, f.Merges},
		{"expiring values", p.Expiring, f.Expiring},
		{"last expiry", p.LastExpiry, f.LastExpiry},
		{"separated values", p.Separated, f.Separated},
		{"bytes of separated values", p.SeparatedBytes, f.SeparatedBytes},
		{"overwritten entries", p.Overwritten, f.Overwritten},
		{"dense tombstones", p.DenseDeletes, f.DenseDeletes},
		{"raw key bytes", p.RawKeyBytes, f.RawKeyBytes},
		{"raw value bytes", p.RawValueBytes, f.RawValueBytes},
		{"filter keys", p.FilterKeys, f.FilterKeys},
		{"range filter keys", p.RangeFilterKeys, f.RangeFilterKeys},
		{"range deletes", p.RangeDeletes, f.RangeDeletes},
	} {
		if c.said != c.found {
			fault("%s is %d, found %d", c.name, c.said, c.found)
		}
	}
	if o := f.expiries.octiles(); p.ExpiryOctiles != (Octiles{}) && p.ExpiryOctiles != o {
		fault("octiles of expiries are %d, found %d", p.ExpiryOctiles, o)
	}
	f.Droppable.Octiles = f.separated.octiles()
	if p.Droppable != (base.Droppable{}) && p.Droppable != f.Droppable {
		fault("droppable bytes in blob files are %v, found %v", p.Droppable, f.Droppable)
	}
	if refs := f.refs.sorted(); !slices.Equal(p.Blobs.withoutIDs(), refs) {
		fault("references to blob files are %v, found %v", p.Blobs.withoutIDs(), refs)
	}
	if f.Entries == 0 {
		return
	}
	if !bytes.Equal(p.Smallest, f.Smallest) || !bytes.Equal(p.Largest, f.last.User) {
		fault("bounds are %q to %q, found %q to %q", p.Smallest, p.Largest, f.Smallest, f.last.User)
	}
	if f.SmallestSeq < p.SmallestSeq || f.LargestSeq > p.LargestSeq {
		fault("sequence numbers are %d to %d, found %d to %d", p.SmallestSeq, p.LargestSeq, f.SmallestSeq, f.LargestSeq)
	}
}
