package sstable

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/siftkv/siftkv/blockindex"
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/cache"
	"github.com/siftkv/siftkv/internal/falsepositives"
	"github.com/siftkv/siftkv/internal/offheap"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A Reader reads one file. All methods are safe for concurrent use, but Close must come last. It is never changed: with
// another filter, or none, a file has another Reader, which shares the rest (see reader_filter.go). Index and filter
// are outside the Go heap, and a method that uses their bytes keeps the reader alive.
type Reader struct {
	*life
	file  io.ReaderAt
	now   vfs.NowReader // file, if it is one
	again vfs.Rereader  // file, if it is one
	part  int           // bytes that passes read at a time; 0: file is no vfs.PartReader
	name  string
	hint  string
	size  int64
	id    uint64
	seq   base.SeqNum // not zero: of all entries; their own are zero

	props       *Properties
	filter      filterpolicy.Filter      // nil: none, not usable, or not in memory
	filterData  *filterData              // of filter
	policy      filterpolicy.Policy      // may know how to decode the filter
	filterErr   error                    // why the file's filter is not usable
	ranges      filterpolicy.RangeFilter // nil: none, not usable, or not in memory
	rangesData  *filterData              // of ranges
	rangesErr   error                    // why the file's range filter is not usable
	rangePolicy filterpolicy.RangePolicy // may know how to decode the range filter
	prefix      filterpolicy.Prefix      // nil: the filter holds no prefixes that could be asked for
	prefixOnly  bool                     // the filter holds no whole keys

	salt           uint64               // of the filter; 0: it is asked for hashes as they are
	falsePositives falsepositives.Table // of the filter

	index      blockindex.Index // of data blocks, or of leaves
	leafBlocks int              // data blocks per leaf; 0: index is in one piece
	big        *bigLeaves       // nil: there are none
	tombstones *rangedel.Set

	// A block is found by its number: data blocks first, index leaves after.
	slots     []cache.Slot
	dataCount int
	cache     *cache.Cache
	mapped    *mapping     // nil: the file is read
	expansion bool         // blocks may expand as those of earlier writers do
	owner     *cache.Owner // of its blocks in the cache; nil: they are not counted
}

const (
	guessTail        = 64 << 10 // is read first when the tail's length is not known
	defaultCacheSize = 8 << 20
)

// Open opens the file at path. Close closes it.
func Open(path string, o *ReaderOptions) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("sstable: %w", err)
	}
	info, err := f.Stat()
	if err == nil {
		opts := *cmp.Or(o, &ReaderOptions{})
		opts.Name = cmp.Or(opts.Name, path)
		var r *Reader
		if r, err = NewReader(f, info.Size(), &opts); err == nil {
			return r, nil
		}
	}
	return nil, errors.Join(err, f.Close())
}

// NewReader opens a file of size bytes, with one read if the options say how long the tail is and two at the most
// otherwise. If f is an io.Closer, Close closes it; after an error it is left open.
func NewReader(f io.ReaderAt, size int64, o *ReaderOptions) (*Reader, error) {
	opts := *cmp.Or(o, &ReaderOptions{})
	r := &Reader{file: f, name: opts.Name, hint: opts.Hint, size: size, cache: opts.Cache, owner: opts.Owner,
		policy: opts.Filter, rangePolicy: opts.RangeFilter, expansion: opts.AnyExpansion,
		falsePositives: opts.FalsePositives, life: &life{}}
	r.now, _ = f.(vfs.NowReader)
	r.again, _ = f.(vfs.Rereader)
	if parts, ok := f.(vfs.PartReader); ok {
		r.part = parts.PartSize()
	}
	if r.cache == nil {
		r.cache = cache.New(cmp.Or(opts.CacheSize, defaultCacheSize))
	} else {
		r.cache = r.cache.Retain()
	}
	if err := r.openAgain(&opts, r.open(&opts)); err != nil {
		r.cache.Release()
		return nil, err
	}
	if opts.Map {
		r.mapFile()
	}
	r.foreign = &foreignMemory{id: r.id, slots: r.slots, cache: r.cache, owner: r.owner, mapped: r.mapped}
	r.watch()
	return r, nil
}

// open reads and decodes the file's tail.
func (r *Reader) open(opts *ReaderOptions) error {
	buf := blockBuffers.get()
	defer blockBuffers.put(buf)
	tail, start, err := r.readTail(buf, opts.TailSize)
	if err != nil {
		return err
	}
	if opts.ID != 0 && opts.ID != r.id {
		return r.corrupt(r.size-footerSize, "footer",
			fmt.Errorf("this is another file: its id is %#x, want %#x", r.id, opts.ID))
	}
	if opts.Seq != 0 && r.props.LargestSeq != 0 {
		return r.corrupt(r.size-footerSize, "properties",
			fmt.Errorf("the entries should have sequence number 0, and have up to %d", r.props.LargestSeq))
	}
	if opts.Seq != 0 && r.props.Separated > 0 {
		return r.corrupt(r.size-footerSize, "properties", errors.New("a file from elsewhere refers to blob files"))
	}
	r.seq = opts.Seq
	if opts.Prefix != nil && opts.Prefix.Name() == r.props.FilterPrefix {
		r.prefix = opts.Prefix
	}
	r.prefixOnly = r.props.PrefixOnly
	if err := r.parseTail(tail, start); err != nil {
		return err
	}
	r.filter, r.filterErr, r.ranges, r.rangesErr = nil, nil, nil, nil // of an attempt before
	if !opts.SkipFilter {
		r.openFilters(tail, start, opts.Room)
	}
	return nil
}

// corrupt returns an error that names the file and the place.
func (r *Reader) corrupt(offset int64, what string, cause error) error {
	return &base.CorruptionError{File: r.name, Offset: offset, What: what, Cause: cause, Hint: r.hint}
}

// readTail reads the file's tail into buf and returns it, from offset start, with its footer
// and its properties checked.
func (r *Reader) readTail(buf *[]byte, guess int64) (tail []byte, start int64, err error) {
	if r.size < footerSize {
		return nil, 0, r.corrupt(0, "footer",
			fmt.Errorf("the file has %d bytes, a footer alone has %d", r.size, footerSize))
	}
	for guess = cmp.Or(max(guess, 0), guessTail); ; {
		n := min(max(guess, footerSize), r.size)
		if int64(cap(*buf)) < n {
			*buf = make([]byte, n)
		}
		tail, start = (*buf)[:n], r.size-n
		if err := readFull(r.file, tail, start); err != nil {
			return nil, 0, r.ioError(start, err)
		}
		f, err := decodeFooter(tail[n-footerSize:], r.size)
		if errors.Is(err, ErrNewerFormat) {
			return nil, 0, fmt.Errorf("%s: %w", r.Name(), err)
		}
		if err != nil {
			return nil, 0, r.corrupt(r.size-footerSize, err.Error(), nil)
		}
		r.id = f.tableID
		if int64(f.tailLength) <= n {
			skip := n - int64(f.tailLength)
			tail, start = tail[skip:], start+skip
			props, err := r.tailBlock(tail, start, handle{f.propsOffset, uint64(f.propsLength)}, "properties")
			if err != nil {
				return nil, 0, err
			}
			r.props, err = decodeProperties(props)
			if err == nil && uint64(f.version) != r.props.version() {
				err = fmt.Errorf("they ask for format version %d, the footer says %d", r.props.version(), f.version)
			}
			if err != nil {
				return nil, 0, r.corrupt(int64(f.propsOffset), "properties", err)
			}
			return tail, start, nil
		}
		guess = int64(f.tailLength)
	}
}

// ReadID returns the id that the footer of a file of size bytes has; 0 if it is damaged or cannot be read.
func ReadID(f io.ReaderAt, size int64) uint64 {
	b := make([]byte, footerSize)
	if size < footerSize || readFull(f, b, size-footerSize) != nil {
		return 0
	}
	footer, err := decodeFooter(b, size)
	if err != nil {
		return 0
	}
	return footer.tableID
}

// readFull reads len(b) bytes at offset.
func readFull(f io.ReaderAt, b []byte, offset int64) error {
	n, err := f.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func (r *Reader) ioError(offset int64, err error) error {
	return fmt.Errorf("siftkv: read %s at offset %d: %w", r.Name(), offset, err)
}

// tailBlock returns the block h out of the tail, checked.
func (r *Reader) tailBlock(tail []byte, start int64, h handle, what string) ([]byte, error) {
	stored, err := h.cut(tail, uint64(start), r.id)
	switch {
	case errors.Is(err, errOutside):
		return nil, r.corrupt(r.size-footerSize, what+" block is not in the tail", nil)
	case err != nil:
		return nil, r.corrupt(int64(h.offset), what, err)
	}
	return stored, nil
}

// parseTail decodes what the properties name, except the filters: a filter that is damaged or of an
// unknown family costs reads, never an answer.
func (r *Reader) parseTail(tail []byte, start int64) error {
	p := r.props
	data, err := r.tailBlock(tail, start, p.index, "index")
	if err != nil {
		return err
	}
	kept := offheap.NewShared(r.life, len(data)).Bytes()
	copy(kept, data)
	if r.index, err = blockindex.Decode(kept); err == nil {
		err = r.checkIndex()
	}
	if err != nil {
		return r.corrupt(int64(p.index.offset), "index", err)
	}
	r.index = r.index.Guided()
	if p.rangeDels.length > 0 {
		data, err := r.tailBlock(tail, start, p.rangeDels, "range tombstones")
		if err != nil {
			return err
		}
		if r.tombstones, err = decodeRangeDels(bytes.Clone(data), r.seq); err != nil {
			return r.corrupt(int64(p.rangeDels.offset), "range tombstones", err)
		}
	}
	return nil
}

// checkIndex holds the index against the properties, and makes a slot for every block.
func (r *Reader) checkIndex() error {
	p := r.props
	blocks, leaves, size := p.DataBlocks, p.IndexLeaves, uint64(r.size)
	if blocks > size/(trailerSize+1) || p.DataBytes > size || p.leafBlocks > blocks {
		return errors.New("the properties promise more than the file can hold")
	}
	wantLeaves := uint64(0)
	if p.leafBlocks > 0 {
		wantLeaves = (blocks + p.leafBlocks - 1) / p.leafBlocks
	}
	if leaves != wantLeaves {
		return errors.New("number of leaves does not match the properties")
	}
	entries, first, end := blocks, uint64(0), p.DataBytes
	if leaves > 0 {
		entries, first, end = leaves, blocks, r.index.End()
	}
	if uint64(r.index.Len()) != entries || uint64(r.index.First()) != first || r.index.End() != end || end > size {
		return errors.New("blocks do not match the properties")
	}
	r.leafBlocks, r.dataCount = int(p.leafBlocks), int(blocks)
	r.slots = make([]cache.Slot, blocks+leaves)
	r.big = r.findBigLeaves()
	return nil
}

// Name returns what errors call the file.
func (r *Reader) Name() string { return cmp.Or(r.name, "the file") }

// Closed reports whether Close has been called.
func (r *Reader) Closed() bool { return r.closed.Load() }

// Properties returns the file's properties. The caller must not change them.
func (r *Reader) Properties() *Properties { return r.props }

// Info returns what the file is, as its writer did. It reads the footer again.
func (r *Reader) Info() (*FileInfo, error) {
	if r.Closed() {
		return nil, ErrClosed
	}
	f, err := r.footer(r.file)
	if r.again != nil && maybeDamage(err) {
		f, err = r.footer(againFile{r})
	}
	if err != nil {
		return nil, err
	}
	return &FileInfo{Properties: *r.props, ID: r.id, Size: r.size, TailSize: int64(f.tailLength)}, nil
}

// footer reads the footer from the file.
func (r *Reader) footer(file io.ReaderAt) (f footer, err error) {
	b := make([]byte, footerSize)
	if err := readFull(file, b, r.size-footerSize); err != nil {
		return f, r.ioError(r.size-footerSize, err)
	}
	if f, err = decodeFooter(b, r.size); err != nil {
		return f, r.corrupt(r.size-footerSize, err.Error(), nil)
	}
	return f, nil
}

// Tombstones returns the file's range tombstones.
func (r *Reader) Tombstones() *rangedel.Set { return r.tombstones }

// FilterError says why the file's filter is not used although it has one.
func (r *Reader) FilterError() error { return r.filterErr }

// RangeFilterError says why the file's range filter is not used although it has one.
func (r *Reader) RangeFilterError() error { return r.rangesErr }

// HasFilter reports whether lookups ask a filter.
func (r *Reader) HasFilter() bool { return r.filter != nil }

// HasFilters reports whether any filter is in memory.
func (r *Reader) HasFilters() bool { return r.filter != nil || r.ranges != nil }

// PinnedBytes returns the bytes that the reader has in memory in addition to cached
// blocks: its filters, and its index. The latter counts the guide, one word per block,
// the leaves that the cache cannot keep, loaded or not, and the range tombstones.
func (r *Reader) PinnedBytes() (filter, index int64) {
	if r.filter != nil {
		filter = int64(r.props.filter.length)
	}
	if r.ranges != nil {
		filter += int64(r.props.rangeFilter.length)
	}
	index = int64(r.index.Size()) + 8*int64(len(r.slots)) + int64(r.tombstones.Size())
	if r.big != nil {
		index += r.big.bytes
	}
	return filter, index
}

func (r *Reader) slotKey(block int) uint64 { return slotKey(r.id, block) }

func slotKey(id uint64, block int) uint64 { return id ^ uint64(block)<<32 }
