package kv

import (
	"errors"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/commit"
	"github.com/siftkv/siftkv/internal/compression"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// With Options.SeparateAtCommit a large value is written once: the commit writes it to the blob file of the log, and
// log and memtable have its handle. A log has one such file at the most, which is made for the first large value. Its
// records are in the order of commits.
//
// The values of a group of commits are with the operating system before the log's records are, and a sync of the log
// syncs both files side by side. So what was acknowledged as synced is whole in both. Of other writes a crash may
// leave a handle whose value is not whole: there history ends, as at a torn record.
//
// When the log ends, so does the file. The flush of its memtable syncs it, and lists it; then it is a blob file as
// all others are. A file that could not be written or synced to its end is never listed: the flush copies the values
// that are still needed, and so does recovery.

// Values that are not synced yet are in memory too: a sync that fails may drop them from the file, and they were
// acknowledged. To keep this small, the file is synced whenever maxUnsynced bytes are unsynced. No writer waits for
// that.

// maxUnsynced is how many bytes of a log's values are in memory before they are synced.
const maxUnsynced = 8 << 20

// A logBlob is the blob file of a log.
type logBlob struct {
	*heldBlob
	mem *memTable
	w   *blob.Writer // the leader's; nil: the file is finished
	out *vfs.TailFile

	counted int64 // bytes of the file that metrics have; the leader's

	syncing atomic.Bool // syncEarly runs, or has failed
}

// logValues is what a commit.Pipeline asks for large values. It is the leader's.
type logValues struct {
	d       *DB
	current *logBlob // of the log that takes writes; nil: it has none
	buf     []byte
	early   sync.WaitGroup // of syncEarly
}

// syncEarly begins a sync of the current file if much is in memory. If it fails, so does the store: what the next
// writers hand over would be in a file that is abandoned.
func (v *logValues) syncEarly() {
	l := v.current
	if l.out.Unsynced() < maxUnsynced || !l.syncing.CompareAndSwap(false, true) {
		return
	}
	v.early.Go(func() {
		switch err := l.out.Sync(); {
		case err == nil:
			l.syncing.Store(false)
		case !errors.Is(err, fs.ErrClosed): // else a flush has copied what the file has
			_ = v.d.commits.Fail("syncing a log's blob file", err) // writers get the error
		}
	})
}

var _ commit.Values = (*logValues)(nil)

// large returns the value of an entry, without its expiry, if it goes to the blob file.
func (v *logValues) large(kind base.Kind, stored []byte) (expiry uint64, value []byte, ok bool) {
	switch kind {
	case base.KindSet:
		value = stored
	case base.KindSetTTL:
		if expiry, value, ok = base.CutExpiry(stored); !ok {
			return 0, nil, false
		}
	default:
		return 0, nil, false
	}
	return expiry, value, len(value) >= v.d.opts.SeparateFrom
}

// Has implements commit.Values.
func (v *logValues) Has(b *commit.Batch) bool {
	if b.Size() < v.d.opts.SeparateFrom {
		return false
	}
	r := b.After(batchrepr.Mark{}, 0)
	for {
		e, ok, err := r.Next()
		if err != nil || !ok {
			return false
		}
		if _, _, large := v.large(e.Key.Kind(), e.Value); large {
			return true
		}
	}
}

// Put implements commit.Values.
func (v *logValues) Put(b *commit.Batch, first base.SeqNum, log *wal.Writer, mem *memtable.Memtable,
	into *commit.Batch) error {
	if v.current == nil || v.current.mem != mem {
		if err := v.begin(log, mem); err != nil {
			return err
		}
	}
	l := v.current
	into.Reset()
	r := b.After(batchrepr.Mark{}, first)
	for {
		e, ok, err := r.Next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		kind := e.Key.Kind()
		expiry, value, large := v.large(kind, e.Value)
		if !large {
			into.Add(kind, e.Key.User, e.Value)
			continue
		}
		h, err := l.w.Add(e.Key.User, e.Key.SeqNum(), expiry, value)
		if err != nil {
			return err
		}
		v.buf, kind = v.buf[:0], base.KindSetApart
		if expiry > 0 {
			v.buf, kind = base.AppendExpiry(v.buf, expiry), base.KindSetTTLApart
		}
		v.buf = h.Append(v.buf)
		into.Add(kind, e.Key.User, v.buf)
	}
	if l.w.Size() >= v.d.mostLogBlob() {
		mem.Seal()
	}
	return nil
}

// maxLogBlob is the largest size of mostLogBlob.
const maxLogBlob = 64 << 20

// mostLogBlob is the size of a log's blob file at which the next log is begun: recovery copies what is in it.
func (d *DB) mostLogBlob() int64 {
	size := min(maxLogBlob, d.opts.MemtableSize)
	if d.opts.blobSize > 0 {
		size = min(size, d.opts.blobSize)
	}
	return size
}

// begin creates the blob file of a log. When it returns, its name and its header are durable: what may be torn later
// can be told from another's file.
func (v *logValues) begin(log *wal.Writer, mem *memTable) error {
	d := v.d
	v.drop()
	num := d.newFileNum()
	name := d.blobPath(num)
	out, err := d.fs.Create(name)
	if err != nil {
		return err
	}
	l := &logBlob{mem: mem, out: vfs.NewTailFile(out)}
	l.w = blob.NewWriter(l.out, blob.WriterOptions{Num: num, ByCommit: true, Compression: compression.None})
	if err = l.w.Flush(); err == nil {
		err = errors.Join(l.out.Sync(), d.fs.SyncDir(d.dir))
	}
	var b *version.Blob
	if err == nil {
		b, err = version.OpenUnfinished(num, &d.blobs, l.out.Reader)
	}
	if err != nil {
		l.w.Abandon()
		return errors.Join(err, l.out.Close(), d.fs.Remove(name))
	}
	l.heldBlob = d.holdLogBlob(b, l)
	mem.Hold(l.heldBlob, 0)
	log.SyncBeside(l.out.Sync)
	v.current = l
	return nil
}

// Flush implements commit.Values.
func (v *logValues) Flush() error {
	l := v.current
	if err := l.w.Flush(); err != nil {
		return err
	}
	v.syncEarly()
	size := l.w.Size()
	v.d.counters.blobCommitted.Add(uint64(size - l.counted))
	l.counted = size
	return nil
}

// finish ends the file of a log that ends.
func (v *logValues) finish() error {
	l := v.current
	if l == nil {
		return nil
	}
	info, err := l.w.Finish()
	if err != nil {
		return err
	}
	l.w, v.current = nil, nil
	l.BlobFile = manifest.BlobFile{Num: info.Num, ID: info.ID, Size: info.Size, Records: info.Records,
		ValueBytes: info.ValueBytes}
	return nil
}

// drop abandons the file of a log that is abandoned: it is never finished.
func (v *logValues) drop() {
	if l := v.current; l != nil {
		l.w.Abandon()
		v.current = nil
	}
}

// settleLogBlobs makes durable the files of logs that the flushed memtables hold. It returns the numbers of those that
// must not be listed: their values have to be copied.
func (d *DB) settleLogBlobs(held []*heldBlob) (copied map[uint64]bool) {
	for _, b := range held {
		l := b.log
		if l == nil {
			continue
		}
		err := errUnfinished
		if l.w == nil {
			err = l.out.Sync()
		}
		if err == nil {
			continue
		}
		if copied == nil {
			copied = map[uint64]bool{}
		}
		copied[b.Num] = true
		d.log.Warn("a log's values are copied, since their file is not whole", "file", d.blobPath(b.Num), "error", err)
	}
	return copied
}

var errUnfinished = errors.New("siftkv: the log was given up before its end")

// closeLogBlobs closes, for writing, files of logs that memtables hold.
func closeLogBlobs(held []*heldBlob) error {
	var errs []error
	for _, b := range held {
		if b.log != nil {
			errs = append(errs, b.log.out.Close())
		}
	}
	return errors.Join(errs...)
}

// copyApart returns a function that replaces handles of some blob files by their values; nil if there are none.
func (d *DB) copyApart(v *version.Version, copied map[uint64]bool) func(base.InternalKey, []byte) (base.InternalKey,
	[]byte, error) {
	if len(copied) == 0 {
		return nil
	}
	var buf []byte
	return func(k base.InternalKey, stored []byte) (base.InternalKey, []byte, error) {
		h, expiry, err := handleOf(k.User, stored, k.Kind())
		if err != nil || !copied[h.File] {
			return k, stored, err
		}
		buf = buf[:0]
		if expiry > 0 {
			buf = base.AppendExpiry(buf, expiry)
		}
		buf, err = d.appendApart(buf, v, k.User, h)
		return base.MakeKey(k.User, k.SeqNum(), inlineKind(k.Kind())), buf, err
	}
}

// inlineKind returns the kind of an entry whose value is put in the place of its handle.
func inlineKind(kind base.Kind) base.Kind {
	if kind == base.KindSetTTLApart {
		return base.KindSetTTL
	}
	return base.KindSet
}
