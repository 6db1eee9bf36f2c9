package changefeed

import (
	"errors"
	"io"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
)

// A Change is a commit: what one batch, one transaction or one Ingest wrote. It is valid until the next is asked for.
type Change struct {
	first, last base.SeqNum
	record      []byte
	ingest      []uint64 // numbers of the files of an ingest
	prefixes    [][]byte
	reader      *reader
}

// First returns the number of the first write.
func (c *Change) First() uint64 { return uint64(c.first) }

// Last returns the number of the last write: it names the change, grows from one to the next, and is what Slot.Ack
// takes. Numbers in between may be missing.
func (c *Change) Last() uint64 { return uint64(c.last) }

// Ingested reports whether the writes are those of files that DB.Ingest took in.
func (c *Change) Ingested() bool { return c.ingest != nil }

// Empty reports whether the change has no writes: it says only how far the slot is.
func (c *Change) Empty() bool { return c.record == nil && c.ingest == nil }

// A streamWriter takes values that Set would need in memory from a reader.
type streamWriter interface {
	SetReader(key []byte, size int64, r io.Reader) error
}

// minStreamed is the length in bytes of values for SetReader.
const minStreamed = 1 << 20

// Replay calls w, a kv.Writer, for each write, in order, as Batch.Replay does. A value that expires comes with the
// moment of its end, whether that has come or not. An operand is as it was given to Merge, and a deleted range is one
// call. Of ingested files it calls w for deleted ranges first. Slices are valid during the call.
//
// It stops at the first error of w, and returns it. W should be a batch, which is given up then: some writes of the
// change may not be repeated.
//
// Large values are read from files that are kept for the slot. If w has a method SetReader(key, size, reader), it gets
// values from 1 MiB on there that do not expire. Others are in memory one at a time.
func (c *Change) Replay(w batchrepr.Sink) error {
	for _, num := range c.ingest {
		if err := c.replayFile(w, num); err != nil {
			return err
		}
	}
	if c.record == nil {
		return nil
	}
	for e, err := range batchrepr.All(c.record) {
		if err != nil {
			return c.reader.damaged(err)
		}
		if err := c.replayEntry(w, e); err != nil {
			return err
		}
	}
	return nil
}

func (c *Change) replayEntry(w batchrepr.Sink, e batchrepr.Entry) error {
	switch {
	case !c.wants(e):
		return nil
	case e.Key.Kind().Separated():
		return c.replaySeparated(w, e)
	default:
		return batchrepr.Replay(w, e)
	}
}

// replaySeparated is Replay of a value in a blob file.
func (c *Change) replaySeparated(w batchrepr.Sink, e batchrepr.Entry) error {
	h, expiry, err := blob.HandleOf(e.Key.Kind(), e.Value)
	if err != nil {
		return err
	}
	r, err := c.reader.values.Reader(h.File)
	if err != nil {
		return err
	}
	if streams, ok := w.(streamWriter); ok && expiry == 0 && h.Size >= minStreamed {
		s, err := r.OpenStream(e.Key.User, h)
		if err != nil {
			return err
		}
		err = streams.SetReader(e.Key.User, h.Size, s)
		return errors.Join(err, s.Err())
	}
	value, err := r.AppendValue(nil, e.Key.User, h)
	if err != nil {
		return err
	}
	if expiry > 0 {
		return w.SetUntil(e.Key.User, value, time.UnixMicro(int64(expiry)))
	}
	return w.Set(e.Key.User, value)
}

// replayFile is Replay of an ingested file.
func (c *Change) replayFile(w batchrepr.Sink, num uint64) (err error) {
	f, name, err := c.reader.openFile(manifest.FileName(manifest.FileTable, num), manifest.KeptPart{}, c.first-1)
	if err != nil {
		return err
	}
	size, err := f.Size()
	var r *sstable.Reader
	if err == nil {
		r, err = sstable.NewReader(f, size,
			&sstable.ReaderOptions{Name: name, Hint: c.reader.store.Hint, CacheSize: fileCache})
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	ts := r.Tombstones()
	for i := range ts.Len() {
		t := ts.At(i)
		if !c.wantsRange(t.Start, t.End) {
			continue
		}
		if err := w.DeleteRange(t.Start, t.End); err != nil {
			return err
		}
	}
	it := r.NewIter(sstable.IterOptions{Sequential: true})
	for ok := it.First(); ok; ok = it.Next() {
		if err := c.replayEntry(w, batchrepr.Entry{Key: it.Key(), Value: it.Value()}); err != nil {
			return err
		}
	}
	return it.Error()
}

// fileCache is the size in bytes of the cache for one pass over an ingested file.
const fileCache = 1 << 20
