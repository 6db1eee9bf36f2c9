package blob

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compression"
)

// ErrOrder is matched when a key is added that is before the last one.
var ErrOrder = errors.New("siftkv: keys of a file of large values must not descend")

var errFinished = errors.New("siftkv: the writer of a file of large values is finished")

// writeBuffer is how many bytes go to the file in one write; longer values go as they are.
const writeBuffer = 256 << 10

var writeBuffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, writeBuffer) }}

// WriterOptions say what to write.
type WriterOptions struct {
	Num         uint64           // of the file; in every handle
	ID          uint64           // in every checksum; 0: a random one
	Compression compression.Kind // of the values that Add is given; Snappy by default
	ByCommit    bool             // records come in the order of commits: keys in any
}

// A Writer writes one file: (Add | AddFrom | Copy)*, then Finish. Keys must not descend, and versions of a key come the
// newest first, as in a table, unless ByCommit is set. After an error every call returns it, and the file is worthless.
// A Writer has one buffer of 256 KiB, and holds no value. It is not safe for concurrent use.
type Writer struct {
	out        *bufio.Writer
	info       Info
	kind       compression.Kind
	err        error
	last       []byte // key
	head       []byte
	compressed []byte
	piece      []byte // of AddFrom and Copy
}

// NewWriter returns a writer that writes to w, sequentially and buffered.
func NewWriter(w io.Writer, o WriterOptions) *Writer {
	bw := &Writer{out: writeBuffers.Get().(*bufio.Writer), kind: o.Compression,
		info: Info{Num: o.Num, ID: o.ID, ByCommit: o.ByCommit}}
	if bw.info.ID == 0 {
		bw.info.ID = rand.Uint64() | 1
	}
	if bw.kind == compression.Default {
		bw.kind = compression.Snappy
	}
	bw.out.Reset(w)
	order := uint32(byKey)
	if o.ByCommit {
		order = byCommit
	}
	bw.write(encodeHeader(bw.info.ID, order))
	return bw
}

// ID returns the file's id.
func (w *Writer) ID() uint64 { return w.info.ID }

// Size returns how many bytes the file would have if it were finished now.
func (w *Writer) Size() int64 { return w.info.Size + footerSize }

// Add adds a value with its key, its sequence number, and its expiry if that is not 0. It keeps nothing of what it is
// given.
func (w *Writer) Add(key []byte, seq base.SeqNum, expiry uint64, value []byte) (h Handle, err error) {
	r := Record{Key: key, Seq: seq, Expiry: expiry, Size: int64(len(value))}
	if !w.admits(&r) {
		return h, w.err
	}
	stored, kind, err := compression.Compress(&w.compressed, value, w.kind)
	if err != nil {
		w.err = err
		return h, err
	}
	r.Compression, r.Stored = kind, int64(len(stored))
	return w.add(&r, func() ([]byte, error) {
		piece := stored[:min(pieceSize, len(stored))]
		stored = stored[len(piece):]
		return piece, nil
	})
}

// AddFrom is Add for a value of size bytes that is read piece by piece. It is not compressed. If src ends before, or
// fails, that is an error; what follows in it is not read.
func (w *Writer) AddFrom(key []byte, seq base.SeqNum, expiry uint64, size int64, src io.Reader) (h Handle, err error) {
	r := Record{Key: key, Seq: seq, Expiry: expiry, Compression: compression.None, Size: size, Stored: size}
	if !w.admits(&r) {
		return h, w.err
	}
	return w.add(&r, func() ([]byte, error) {
		piece := w.room(int(min(pieceSize, size)))
		size -= int64(len(piece))
		_, err := io.ReadFull(src, piece)
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return piece, err
	})
}

// room returns n bytes of the buffer for pieces.
func (w *Writer) room(n int) []byte {
	if cap(w.piece) < n {
		w.piece = make([]byte, n)
	}
	return w.piece[:n]
}

// Copy adds the record that a stream of another file, of which nothing was read yet, is of: as it is stored, each piece
// checked, and with its sequence number.
func (w *Writer) Copy(s *Stream) (h Handle, err error) {
	if !w.admits(&s.record) {
		return h, w.err
	}
	return w.add(&s.record, s.nextPiece)
}

// admits reports whether a record may come next.
func (w *Writer) admits(r *Record) bool {
	switch {
	case w.err != nil:
	case len(r.Key) > MaxKey || r.Size < 0 || r.Size > MaxValue:
		w.err = fmt.Errorf("siftkv: a key of %d bytes with a value of %d: the limits are %d and %d", len(r.Key),
			r.Size, MaxKey, MaxValue)
	case r.Seq > base.MaxSeqNum:
		w.err = fmt.Errorf("siftkv: no sequence number: %d", r.Seq)
	case w.info.Records > 0 && !w.info.ByCommit && bytes.Compare(r.Key, w.last) < 0:
		w.err = fmt.Errorf("%w: %q after %q", ErrOrder, r.Key, w.last)
	}
	return w.err == nil
}

// add writes a record; next returns its value piece by piece.
func (w *Writer) add(r *Record, next func() ([]byte, error)) (Handle, error) {
	h := Handle{File: w.info.Num, Ordinal: w.info.Records, Offset: w.info.Size, Size: r.Size}
	w.head = r.appendHead(w.head[:0], w.info.ID, h.Offset)
	w.write(w.head)
	for left := r.Stored; left > 0 && w.err == nil; {
		piece, err := next()
		if err != nil {
			w.err = err
			break
		}
		sum := base.Checksum(w.info.ID, uint64(w.info.Size), piece)
		w.write(piece)
		w.head = binary.LittleEndian.AppendUint32(w.head[:0], sum)
		w.write(w.head)
		left -= int64(len(piece))
	}
	w.last = append(w.last[:0], r.Key...)
	w.info.Records++
	w.info.KeyBytes += uint64(len(r.Key))
	w.info.ValueBytes += uint64(r.Size)
	h.Length = w.info.Size - h.Offset
	return h, w.err
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	if _, err := w.out.Write(b); err != nil {
		w.err = fmt.Errorf("siftkv: write a file of large values: %w", err)
		return
	}
	w.info.Size += int64(len(b))
}

// Flush hands what is buffered to the file.
func (w *Writer) Flush() error {
	if w.err == nil {
		if err := w.out.Flush(); err != nil {
			w.err = fmt.Errorf("siftkv: write a file of large values: %w", err)
		}
	}
	return w.err
}

// Abandon gives the writer's buffer back. It comes last, and does nothing after Finish.
func (w *Writer) Abandon() {
	if w.out != nil {
		w.out.Reset(nil)
		writeBuffers.Put(w.out)
		w.out = nil
	}
	if w.err == nil {
		w.err = errFinished
	}
}

// Finish writes the footer and what is buffered, and returns what the file is.
func (w *Writer) Finish() (Info, error) {
	if w.err != nil {
		return Info{}, w.err
	}
	w.info.Size += footerSize
	footer := w.info.appendFooter(nil)
	w.info.Size -= footerSize
	w.write(footer)
	if err := w.out.Flush(); err != nil && w.err == nil {
		w.err = fmt.Errorf("siftkv: write a file of large values: %w", err)
	}
	if w.err != nil {
		return Info{}, w.err
	}
	w.err = errFinished
	w.out.Reset(nil)
	writeBuffers.Put(w.out)
	w.out = nil
	return w.info, nil
}
