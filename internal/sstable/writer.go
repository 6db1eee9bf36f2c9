package sstable

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"

	"github.com/siftkv/siftkv/blockindex"
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/none"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/compression"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// ErrOrder is matched when a key is added that is not after the last one.
var ErrOrder = errors.New("sstable: keys must be added in ascending order")

var errFinished = errors.New("sstable: the writer is finished")

const (
	maxEntrySize = maxBlockSize / 2 // a key with its value: a reader has to accept the block
	writeBuffer  = 256 << 10        // bytes that go to the file in one write
)

// writeBuffers are those of finished writers.
var writeBuffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, writeBuffer) }}

// A Writer writes one file: (Add | AddTombstone)*, then Finish. After an error every call
// returns it, and the file is worthless. A Writer is not safe for concurrent use.
type Writer struct {
	out    *bufio.Writer
	o      WriterOptions
	offset uint64 // of the next block
	err    error

	block blockWriter
	index indexWriter

	filter     filterpolicy.Builder
	ranges     filterpolicy.RangeBuilder // nil: no range filter
	prefix     []byte                    // the last one that went into the filter
	prefixed   bool                      // there is one
	unprefixed bool                      // a key had none, and the filter should hold nothing else
	tombstones []rangedel.Tombstone
	props      tally
	hash       uint64 // of the last user key
	blockLast  []byte // last user key of the last complete block, until its separator is known
	pending    bool   // the last complete block has no separator yet
	separator  []byte
	compressed []byte
	trailer    []byte
	blobID     func(num uint64) uint64 // nil: there are no blob files
}

// A FileInfo describes a finished file.
type FileInfo struct {
	Properties
	ID       uint64 // in every checksum of the file
	Size     int64  // of the file in bytes
	TailSize int64  // of its tail in bytes; ReaderOptions.TailSize
}

// NewWriter returns a writer that writes to w, sequentially and buffered.
func NewWriter(w io.Writer, o *WriterOptions) *Writer {
	opts, err := o.withDefaults()
	if opts.ID == 0 {
		opts.ID = rand.Uint64() | 1
	}
	sw := &Writer{o: opts, err: err, out: writeBuffers.Get().(*bufio.Writer)}
	sw.out.Reset(w)
	if err != nil {
		return sw
	}
	sw.block = blockWriter{restartInterval: opts.RestartInterval,
		restartBytes: max(minRestartBytes, opts.BlockSize/maxIntervals), hashIndex: true}
	sw.index.partition = opts.IndexPartition
	sw.filter = opts.Filter.NewBuilder()
	if opts.RangeFilter != nil && opts.RangeFilter.Name() != none.Name {
		sw.ranges = opts.RangeFilter.NewRangeBuilder()
	}
	sw.props = newTally()
	sw.props.Compression, sw.props.written = opts.Compression, slotsVersion
	sw.props.BlockSize, sw.props.RestartInterval = uint64(opts.BlockSize), uint64(opts.RestartInterval)
	return sw
}

// KnowBlobs tells the writer the ids of the blob files that handles refer to, by number; 0 if there
// is no such file, which is an error of Finish.
func (w *Writer) KnowBlobs(id func(num uint64) uint64) { w.blobID = id }

// AddTombstone adds a range tombstone. It keeps the tombstone's slices.
func (w *Writer) AddTombstone(t rangedel.Tombstone) error {
	if w.err == nil && !t.Empty() {
		w.tombstones = append(w.tombstones, t)
		w.props.addSeq(t.Seq)
	}
	return w.err
}

// Add adds a version of a key. Internal keys must ascend strictly.
func (w *Writer) Add(k base.InternalKey, value []byte) error {
	if w.err != nil {
		return w.err
	}
	if len(k.User)+len(value) > maxEntrySize {
		w.err = fmt.Errorf("sstable: an entry has %d bytes, the limit is %d", len(k.User)+len(value), maxEntrySize)
		return w.err
	}
	if k.Kind() > base.KindMerge {
		if w.err = checkSpecial(k, value); w.err != nil {
			return w.err
		}
	}
	shared, again, ok := w.follows(k)
	if !ok {
		w.err = fmt.Errorf("%w: %s after %s", ErrOrder, k, w.props.last)
		return w.err
	}
	if !again {
		w.hash = filterpolicy.Hash(k.User)
		w.addToFilter(k.User)
	}
	if w.block.empty() {
		w.addSeparator(k.User)
	}
	w.block.add(k, value, w.hash, shared, again)
	w.props.add(k, value, again)
	if w.block.size() >= w.o.BlockSize {
		w.finishBlock()
	}
	return w.err
}

// checkSpecial checks the value of an entry that has more than a value, or less: an expiry, a handle.
func checkSpecial(k base.InternalKey, value []byte) error {
	if k.Kind().Expires() && len(value) < base.ExpirySize {
		return fmt.Errorf("sstable: %s has no expiry", k)
	}
	if k.Kind().Separated() {
		if _, _, err := blob.HandleOf(k.Kind(), value); err != nil {
			return fmt.Errorf("sstable: %s: %w", k, err)
		}
	}
	return nil
}

// AddDelete adds a tombstone at sequence number zero. It refuses one for the last key: the number
// would not tell which of the two is newer.
func (w *Writer) AddDelete(user []byte) error {
	k := base.MakeKey(user, 0, base.KindDelete)
	if last := w.props.last; w.err == nil && w.props.Entries > 0 && bytes.Equal(user, last.User) {
		w.err = fmt.Errorf("%w: %s after %s", ErrOrder, k, last)
	}
	return w.Add(k, nil)
}

// follows reports whether k may come after the last key, how many bytes the two user
// keys have in common, and whether they are the same, in one pass over the keys.
func (w *Writer) follows(k base.InternalKey) (shared int, again, ok bool) {
	if w.props.Entries == 0 {
		return 0, false, true
	}
	last := w.props.last.User
	shared = base.CommonPrefix(last, k.User)
	switch {
	case shared == len(k.User):
		again = shared == len(last)
		return shared, again, again && k.Trailer < w.props.last.Trailer
	case shared == len(last):
		return shared, false, true
	}
	return shared, false, last[shared] < k.User[shared]
}

// Size returns about how many bytes the file has so far, the tail included.
func (w *Writer) Size() int64 {
	return int64(w.offset) + int64(w.block.size()) + int64(w.index.size())
}

// Referred returns the bytes of the blob file records that the file's handles, so far, refer to.
func (w *Writer) Referred() uint64 { return w.props.refs.bytes }

// finishBlock writes the current block. Its separator waits for the next key.
func (w *Writer) finishBlock() {
	w.blockLast = append(w.blockLast[:0], w.props.last.User...)
	data := w.block.finish()
	stored, c, err := compression.Compress(&w.compressed, data, w.o.Compression)
	if err != nil {
		w.err = err
		return
	}
	w.writeBlock(stored, c)
	w.props.DataBlocks++
	w.pending = true
}

// addSeparator enters the last complete block into the index, now that the key after it is known (nil: none).
func (w *Writer) addSeparator(next []byte) {
	if !w.pending {
		return
	}
	w.pending = false
	if next == nil {
		w.separator = w.index.appendLast(w.separator[:0], w.blockLast)
	} else {
		w.separator = blockindex.AppendSeparator(w.separator[:0], w.blockLast, next)
	}
	w.index.add(w.separator, w.offset)
}

// writeBlock writes a block as stored, with its trailer, and returns its handle.
func (w *Writer) writeBlock(stored []byte, c Compression) handle {
	h := handle{offset: w.offset, length: uint64(len(stored))}
	w.trailer = appendTrailer(w.trailer[:0], w.o.ID, w.offset, stored, c)
	w.write(stored)
	w.write(w.trailer)
	return h
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	if _, err := w.out.Write(b); err != nil {
		w.err = fmt.Errorf("sstable: write: %w", err)
		return
	}
	w.offset += uint64(len(b))
}

// Finish writes what is left and the tail, and returns what the file is.
func (w *Writer) Finish() (*FileInfo, error) {
	if w.err == nil && !w.block.empty() {
		w.finishBlock()
	}
	if w.err != nil {
		return nil, w.err
	}
	w.addSeparator(nil)
	w.props.DataBytes = w.offset
	topIndex := w.finishIndex()
	tail := w.offset
	w.writeRangeDels()
	w.writeFilter()
	w.writeRangeFilter()
	w.props.index = w.writeBlock(topIndex, NoCompression)
	w.props.IndexBytes += uint64(len(topIndex)) + trailerSize
	if err := w.finishProperties(); err != nil {
		return nil, err
	}
	props := w.writeBlock(w.props.encode(), NoCompression)
	w.write(footer{
		propsOffset: props.offset,
		propsLength: uint32(props.length),
		tailLength:  w.offset + footerSize - tail,
		tableID:     w.o.ID,
		fileSize:    w.offset + footerSize,
		version:     uint32(w.props.written),
	}.append(nil))
	if err := w.out.Flush(); err != nil && w.err == nil {
		w.err = fmt.Errorf("sstable: write: %w", err)
	}
	if w.err != nil {
		return nil, w.err
	}
	w.err = errFinished
	w.out.Reset(nil)
	writeBuffers.Put(w.out)
	w.out = nil
	size, tailSize := int64(w.offset), int64(w.offset-tail)
	return &FileInfo{Properties: w.props.Properties, ID: w.o.ID, Size: size, TailSize: tailSize}, nil
}

// Keys returns a sample of the keys of the file.
func (w *Writer) Keys() *KeySample { return &w.props.keys }

// finishIndex writes the index leaves, if there are any, and returns the index that goes into the tail.
func (w *Writer) finishIndex() []byte {
	w.index.finish()
	if w.index.perLeaf == 0 {
		return w.index.leaf.Append(nil)
	}
	var top blockindex.Builder
	top.Reset(int(w.props.DataBlocks), w.offset)
	for _, data := range w.index.leaves {
		w.writeBlock(data, NoCompression)
		leaf := blockindex.View(data)
		w.separator = leaf.AppendSeparator(w.separator[:0], leaf.Len()-1)
		top.Add(w.separator, w.offset)
		w.props.IndexBytes += uint64(len(data)) + trailerSize
	}
	w.props.IndexLeaves = uint64(len(w.index.leaves))
	w.props.leafBlocks = uint64(w.index.perLeaf)
	return top.Append(nil)
}

// writeRangeDels writes the tombstones as fragments, in a block like a data block's: key = start, trailer, value = end.
func (w *Writer) writeRangeDels() {
	set, err := rangedel.FromFragments(w.tombstones) // as flushes and compactions add them
	if err != nil {
		set = rangedel.NewSet(w.tombstones)
	}
	if set.Empty() {
		return
	}
	b := blockWriter{restartInterval: 1}
	for i := range set.Len() {
		t := set.At(i)
		b.add(base.MakeKey(t.Start, t.Seq, base.KindRangeDelete), rangedel.AppendEnd(nil, t.End), 0, 0, false)
	}
	w.props.RangeDeletes = uint64(set.Len())
	w.props.rangeDels = w.writeBlock(b.finish(), NoCompression)
}

func (w *Writer) finishProperties() error {
	w.props.finish()
	if w.props.Merges > 0 {
		w.props.Merger = w.o.Merger
	}
	if w.props.Entries == 0 && len(w.tombstones) == 0 {
		w.props.SmallestSeq = 0
	}
	if w.props.Separated > 0 {
		w.finishBlobs()
	}
	return w.err
}

// finishBlobs lists the blob files that handles refer to.
func (w *Writer) finishBlobs() {
	w.props.written, w.props.Blobs = separatedVersion, w.props.refs.sorted()
	for i := range w.props.Blobs {
		ref := &w.props.Blobs[i]
		if w.blobID != nil {
			ref.ID = w.blobID(ref.Num)
		}
		if ref.ID == 0 && w.err == nil {
			w.err = fmt.Errorf("sstable: a handle refers to blob file %d, and there is none", ref.Num)
		}
	}
}
