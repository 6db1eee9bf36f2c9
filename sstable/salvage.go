package sstable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// SalvageOptions say what is known of a damaged file from elsewhere.
type SalvageOptions struct {
	// Name is what errors call the file.
	Name string
	// ID is the file's id, 0 if only the file itself can tell.
	ID uint64
	// Seq, if not zero, is the sequence number of all entries, as of ReaderOptions.
	Seq base.SeqNum
}

// A Gap is a piece of a file in which entries may have been lost: versions of keys
// from After to Before, both included. A nil After has no lower bound, a nil Before
// no upper one.
type Gap struct {
	Offset, Length int64
	After, Before  []byte
	What           string
}

// A Salvage says what was got out of a damaged file, and what was not.
type Salvage struct {
	ID         uint64
	Properties *Properties // nil if they are damaged
	Blocks     uint64      // data blocks that check out
	Entries    uint64      // in these
	Gaps       []Gap       // in the order of the file
	Tombstones []rangedel.Tombstone
	// TombstonesLost is set if the file's range tombstones are damaged. If Properties
	// is nil as well, there may have been none.
	TombstonesLost bool
	// Tail has the faults of what stands behind the data blocks. They cost no
	// entries.
	Tail []error
}

// EntriesLost returns how many point entries were lost. It reports false if that is
// not known.
func (s *Salvage) EntriesLost() (n uint64, known bool) {
	if s.Properties == nil || s.Properties.Entries < s.Entries {
		return 0, false
	}
	return s.Properties.Entries - s.Entries, true
}

// SalvageFile calls add with every point entry of every data block that checks out
// in a file of size bytes, in order; key and value are valid during the call. It
// needs neither footer nor index nor properties, if the file's id is known: blocks
// are recognized by their checksums. Pieces that cannot be read count as damaged.
//
// It returns an error if add does, if the file's id is not known, or if a newer
// version of this package wrote the file. It holds the file in memory.
func SalvageFile(f io.ReaderAt, size int64, o *SalvageOptions, add func(k base.InternalKey, value []byte) error) (*Salvage, error) {
	var opts SalvageOptions
	if o != nil {
		opts = *o
	}
	s := &salvager{name: opts.Name, seq: opts.Seq, data: readAround(f, size), add: add, limit: int(size), out: &Salvage{}}
	if err := s.identify(opts.ID); err != nil {
		return nil, err
	}
	s.readTail()
	if err := s.walk(); err != nil {
		return nil, err
	}
	s.finish()
	return s.out, nil
}

// readAround returns the file's bytes, with zeros for those that cannot be read.
func readAround(f io.ReaderAt, size int64) []byte {
	const piece = 4 << 10
	data := make([]byte, size)
	if readFull(f, data, 0) == nil {
		return data
	}
	for at := int64(0); at < size; at += piece {
		b := data[at:min(at+piece, size)]
		if readFull(f, b, at) != nil {
			clear(b)
		}
	}
	return data
}

// A salvager goes through a file's blocks.
type salvager struct {
	name  string
	seq   base.SeqNum // not zero: of all entries
	data  []byte
	limit int // no data block goes on behind it
	add   func(base.InternalKey, []byte) error
	out   *Salvage

	footer   *footer
	starts   []int // offsets at which blocks begin, ascending, as far as the index tells
	complete bool  // it tells all of them
	largest  int   // bytes of the largest block so far

	last    base.InternalKey
	dataEnd int  // of the last data block that checks out
	pending *Gap // the next entry is its upper bound
}

func (s *salvager) tailFault(format string, args ...any) {
	s.out.Tail = append(s.out.Tail, base.Corruptf(s.name, int64(s.limit), format, args...))
}

// identify finds the file's id: what the footer says if it checks out, what the
// caller knows, or what stands in a damaged footer and agrees with a block.
func (s *salvager) identify(known uint64) error {
	if len(s.data) >= footerSize {
		raw := s.data[len(s.data)-footerSize:]
		f, err := decodeFooter(raw, int64(len(s.data)))
		switch {
		case err == nil:
			s.footer, s.out.ID = &f, f.tableID
			return nil
		case errors.Is(err, ErrNewerFormat) && known == 0:
			return fmt.Errorf("%s: %w", s.name, err)
		}
		s.tailFault("%v", err)
		if id := binary.LittleEndian.Uint64(raw[24:]); known == 0 && s.anyBlock(id) {
			known = id
		}
	} else {
		s.tailFault("footer: the file has %d bytes", len(s.data))
	}
	if known == 0 {
		return &base.CorruptionError{File: s.name, Offset: max(int64(len(s.data))-footerSize, 0),
			What: "footer: the file's id is lost, and without it no block can be checked"}
	}
	s.out.ID = known
	return nil
}

func (s *salvager) anyBlock(id uint64) bool {
	s.out.ID = id
	if _, _, _, ok := s.block(0, len(s.data)); ok {
		return true
	}
	return s.resume(0) < len(s.data)
}

// readTail decodes what the footer leads to.
func (s *salvager) readTail() {
	if s.footer == nil {
		return
	}
	f := s.footer
	raw, err := s.tailBlock(handle{f.propsOffset, uint64(f.propsLength)})
	var p *Properties
	if err == nil {
		p, err = decodeProperties(raw)
	}
	if err != nil {
		s.tailFault("properties: %v", err)
		return
	}
	if p.DataBytes > uint64(len(s.data)) {
		s.tailFault("properties: the file cannot hold %d bytes of blocks", p.DataBytes)
		return
	}
	s.out.Properties, s.limit = p, int(p.DataBytes)
	if err := s.readIndex(p); err != nil {
		s.tailFault("index: %v", err)
	}
	if p.rangeDels.length > 0 {
		raw, err := s.tailBlock(p.rangeDels)
		var set *rangedel.Set
		if err == nil {
			set, err = decodeRangeDels(bytes.Clone(raw), s.seq)
		}
		if err != nil {
			s.tailFault("range tombstones: %v", err)
			s.out.TombstonesLost = true
		}
		s.out.Tombstones = set.Clip(nil, nil, nil)
	}
	if p.filter.length > 0 {
		raw, err := s.tailBlock(p.filter)
		if err == nil {
			_, err = filterpolicy.Decode(p.FilterFamily, bytes.Clone(raw))
		}
		if err != nil && !errors.Is(err, filterpolicy.ErrUnknownFamily) {
			s.tailFault("filter: %v", err)
		}
	}
}

// tailBlock returns a block that is not compressed, checked.
func (s *salvager) tailBlock(h handle) ([]byte, error) {
	size := uint64(len(s.data))
	if h.offset > size || h.length > size || h.offset+h.length+trailerSize > size {
		return nil, errors.New("the block is not in the file")
	}
	stored, c, err := splitTrailer(s.data[h.offset:h.offset+h.length+trailerSize], s.out.ID, h.offset)
	if err == nil && c != NoCompression {
		err = errors.New("a block of the tail is never compressed")
	}
	return stored, err
}

// walk goes from block to block, and over what lies between them.
func (s *salvager) walk() error {
	for pos := 0; pos < s.limit; {
		stored, c, end, ok := s.block(pos, s.limit-pos)
		if ok {
			var err error
			if ok, err = s.take(pos, end, stored, c); err != nil {
				return err
			}
		}
		if ok {
			s.largest = max(s.largest, end-pos)
			pos = end
			continue
		}
		next := s.resume(pos)
		s.gap(pos, next, "no block here checks out")
		pos = next
	}
	return nil
}

// take uses a block whose checksum is right. It reports whether the block could
// stand here.
func (s *salvager) take(pos, end int, stored []byte, c Compression) (ok bool, err error) {
	data, err := decompress(nil, stored, c)
	if err == nil && s.isData(data) {
		if s.pending != nil {
			s.closeGap(s.firstKey(data))
		}
		s.out.Blocks++
		s.dataEnd = end
		return true, s.emit(data)
	}
	if s.out.Properties != nil && pos < int(s.out.Properties.DataBytes) {
		return false, nil
	}
	// Behind the data, and what stands there is known by its form alone.
	if s.footer == nil || s.out.Properties == nil {
		if set, err := decodeRangeDels(bytes.Clone(stored), s.seq); err == nil && !set.Empty() {
			s.out.Tombstones = set.Clip(nil, nil, nil)
		} else if p, err := decodeProperties(stored); err == nil && p.DataBlocks > 0 && p.DataBytes >= uint64(s.dataEnd) {
			s.out.Properties = p
		}
	}
	return true, nil
}

// isData reports whether a decoded block is a data block behind the entries so far.
func (s *salvager) isData(data []byte) bool {
	if checkBlock(data) != nil {
		return false
	}
	var i blockIter
	i.reset(viewBlock(data))
	last := s.last.Clone()
	n := s.out.Entries
	for ok := i.first(); ok; ok = i.next() {
		if i.key.Kind() == base.KindRangeDelete || n > 0 && base.Compare(last, i.key) >= 0 {
			return false
		}
		last = base.InternalKey{User: append(last.User[:0], i.key.User...), Trailer: i.key.Trailer}
		n++
	}
	return i.err == nil && n > s.out.Entries
}

func (s *salvager) firstKey(data []byte) []byte {
	k, _ := viewBlock(data).restartKey(0)
	return bytes.Clone(k.User)
}

func (s *salvager) emit(data []byte) error {
	var i blockIter
	i.reset(viewBlock(data))
	for ok := i.first(); ok; ok = i.next() {
		k := i.key
		if s.seq != 0 {
			k.Trailer = base.MakeTrailer(s.seq, k.Kind())
		}
		if err := s.add(k, i.value); err != nil {
			return err
		}
		s.out.Entries++
		s.last = base.InternalKey{User: append(s.last.User[:0], k.User...), Trailer: k.Trailer}
	}
	return nil
}

// gap notes that no entries come from [from, to).
func (s *salvager) gap(from, to int, what string) {
	if s.pending == nil {
		s.pending = &Gap{Offset: int64(from), What: what}
		if s.out.Entries > 0 {
			s.pending.After = append([]byte{}, s.last.User...)
		}
	}
	s.pending.Length = int64(to) - s.pending.Offset
}

func (s *salvager) closeGap(before []byte) {
	s.pending.Before = before
	s.out.Gaps = append(s.out.Gaps, *s.pending)
	s.pending = nil
}

// finish closes the last gap. What is missing behind the data is no gap if the
// properties tell where the data ends.
func (s *salvager) finish() {
	p := s.out.Properties
	if p == nil {
		s.out.TombstonesLost = len(s.out.Tombstones) == 0
		s.gap(s.dataEnd, len(s.data), "how far the data went is not known")
	} else if s.pending == nil && s.dataEnd < int(p.DataBytes) && p.Entries > s.out.Entries {
		s.gap(s.dataEnd, int(p.DataBytes), "the file ends here")
	}
	if s.pending != nil {
		s.closeGap(nil)
	}
	if p == nil {
		return
	}
	var gaps []Gap
	for _, g := range s.out.Gaps {
		if g.Offset >= int64(p.DataBytes) {
			s.tailFault("%d bytes at offset %d: %s", g.Length, g.Offset, g.What)
			continue
		}
		if g.After == nil {
			g.After = p.Smallest
		}
		if g.Before == nil {
			g.Before = p.Largest
		}
		gaps = append(gaps, g)
	}
	s.out.Gaps = gaps
	if p.RangeDeletes > 0 && len(s.out.Tombstones) == 0 {
		s.out.TombstonesLost = true
	}
}
