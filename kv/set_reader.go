package kv

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/commit"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/values"
)

// MaxReaderSize is the largest value that SetReader takes, in bytes.
const MaxReaderSize = blob.MaxValue

// minStreamed is the minimum length in bytes of a value that is not held in memory: that of a piece, of which one is
// in memory anyway.
const minStreamed = 256 << 10

// SetReader stores under key the next size bytes of r, up to MaxReaderSize. It reads no further in r. The value is not
// held in memory. It goes into a blob file of its own as it is read, which is synced, whatever o says. Then a handle
// of it is committed as any other write is. No reader sees any of the value before it is there as a whole, and other
// writers do not wait while r is read. A value of less than 256 KiB is read into memory, and is then as one of Set.
//
// If r ends too early or fails, or anything else comes between, nothing is written, and the error matches that of r:
// io.ErrUnexpectedEOF if it ended. A full disk is an error of this call alone, as long as the value is read. A
// concurrent write of the same key may come before or after, as with Set. The goroutine of the caller reads r. If r
// blocks for good, SetReader does not return, but Close does; after that SetReader returns ErrClosed once r does. In an
// object store the value is as one of Set: SetReader takes values up to MaxValueSize there, and holds them in memory.
//
// SetReader checks ctx between two reads of r, and then does what Batch.CommitContext does. An error that matches
// ctx.Err() always means that nothing was written.
func (d *DB) SetReader(ctx context.Context, key []byte, size int64, r io.Reader, o *WriteOptions) error {
	if err := errors.Join(d.writable(), checkKey(key), d.opts.checkStreamed(size)); err != nil {
		return err
	}
	if r == nil {
		return errNilReader
	}
	src := &streamSource{ctx: ctx, d: d, r: r}
	if size < d.opts.harness.MinStreamed || d.opts.Objects != nil {
		value := make([]byte, size)
		if n, err := io.ReadFull(src, value); err != nil {
			return src.failed(key, int64(n), size, err)
		}
		b := d.NewBatch()
		_ = b.Set(key, value) // CommitContext says so too
		return b.CommitContext(ctx, o)
	}
	f, err := d.values.Create()
	if err != nil {
		return err
	}
	defer f.End()
	// The write gets its number when it is committed, and the record has to have one before. Any larger than
	// those of all writes that came before the call will do: others are concurrent with it.
	if err := f.Fill(key, d.seq()+1, size, src); err != nil {
		return src.failed(key, src.read, size, err)
	}
	if err := f.Finish(); err != nil {
		return err
	}
	return commitStream(d, ctx, key, f, o)
}

// commitStream commits the handle of a value that is in a file of its own.
func commitStream(d *DB, ctx context.Context, key []byte, f *values.File, o *WriteOptions) error {
	b := d.NewBatch()
	return f.Commit(func(h blob.Handle) error {
		value := h.Append(nil)
		b.repr.Arena = memtable.EntrySize(len(key), len(value))
		b.repr.Add(base.KindSetSeparated, key, value)
		b.repr.Held = []commit.Held{{Held: f, Bytes: f.Size}}
		defer func() {
			if b.repr.Held == nil {
				d.commits.Bytes.Add(uint64(h.Size)) // of the batch there was the handle
			}
		}()
		return b.CommitContext(ctx, o)
	}, func() bool { return len(b.repr.Held) == 0 })
}

// checkStreamed returns an error for a value that is too long for SetReader.
func (o *Options) checkStreamed(size int64) error {
	most := int64(MaxReaderSize)
	if o.Objects != nil {
		most = MaxValueSize
	}
	switch {
	case size < 0:
		return fmt.Errorf("siftkv: a value of %d bytes", size)
	case size > most:
		return fmt.Errorf("%w: a value has %d bytes, the limit is %d", ErrTooLarge, size, most)
	}
	return nil
}

// A streamSource is the reader of a value. It fails when the store takes no writes, or ctx has ended.
type streamSource struct {
	ctx  context.Context
	d    *DB
	r    io.Reader
	read int64
}

func (s *streamSource) Read(b []byte) (int, error) {
	if err := s.d.writable(); err != nil {
		return 0, err
	}
	if s.ctx.Err() != nil {
		return 0, base.ContextError(s.ctx, "a value was read")
	}
	n, err := s.r.Read(b)
	if n < 0 || n > len(b) {
		return 0, fmt.Errorf("siftkv: the reader returned %d for a Read of %d bytes", n, len(b))
	}
	s.read += int64(n)
	return n, err
}

// failed describes why a value could not be read.
func (s *streamSource) failed(key []byte, n, size int64, err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("siftkv: the value of key %q, of which %d bytes of %d were read: %w", key, n, size, err)
}
