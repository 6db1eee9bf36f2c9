package values

import (
	"errors"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// With SeparateAtCommit a large value is written once: the commit writes it to the blob file of the log, and log and
// memtable have its handle. A log has at most one such file, which is made for the first large value. Its records are
// in the order of commits.
//
// The values of a group of commits are with the operating system before the log's records are, and a sync of the log
// syncs both files side by side. So what was acknowledged as synced is whole in both. Of other writes a crash may
// leave a handle whose value is not whole: there history ends, as at a torn record.
//
// When the log ends, so does the file. The flush of its memtable syncs it and lists it. A file that could not be
// written or synced to its end is never listed: the flush copies the values that are still needed, and so does
// recovery.
//
// Values that are not synced yet are in memory too: a sync that fails may drop them from the file, and they were
// acknowledged. To keep this small, the file is synced whenever maxUnsynced bytes are unsynced. No writer waits for
// that.

// maxUnsynced is how many bytes of a log's values are in memory before they are synced.
const maxUnsynced = 8 << 20

// A logFile is what the blob file of a log has in addition.
type logFile struct {
	mem     *memtable.Memtable
	out     *vfs.TailFile
	counted int64       // bytes of the file that are in Written
	syncing atomic.Bool // a sync of Commits runs, or has failed
}

// Commits writes large values when they are committed. It is a commit.Values: the leader's, except Has and AwaitSyncs.
type Commits struct {
	s       *Store
	current *File // of the log that takes writes; nil: it has none
	buf     []byte
	syncs   sync.WaitGroup // of beginSync
}

// Commits returns the writer of values for commits.
func (s *Store) Commits() *Commits { return &s.commits }

// large returns the value of an entry, without its expiry, if it goes to the blob file.
func (c *Commits) large(kind base.Kind, stored []byte) (expiry uint64, value []byte, ok bool) {
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
	return expiry, value, len(value) >= c.s.SeparateFrom
}

// Has reports whether a batch has values that go to the blob file.
func (c *Commits) Has(b *batchrepr.Writer) bool {
	if b.Size() < c.s.SeparateFrom {
		return false
	}
	r := b.After(batchrepr.Mark{}, 0)
	for {
		e, ok, err := r.Next()
		if err != nil || !ok {
			return false
		}
		if _, _, large := c.large(e.Key.Kind(), e.Value); large {
			return true
		}
	}
}

// Put writes the large values of a batch whose first write is number first. It fills into with the writes, with
// handles in place of the values.
func (c *Commits) Put(b *batchrepr.Writer, first base.SeqNum, log *wal.Writer, mem *memtable.Memtable,
	into *batchrepr.Writer) error {
	if c.current == nil || c.current.log.mem != mem {
		if err := c.begin(log, mem); err != nil {
			return err
		}
	}
	f := c.current
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
		expiry, value, large := c.large(kind, e.Value)
		if !large {
			into.Add(kind, e.Key.User, e.Value)
			continue
		}
		h, err := f.w.Add(e.Key.User, e.Key.SeqNum(), expiry, value)
		if err != nil {
			return err
		}
		c.buf, kind = c.buf[:0], base.KindSetSeparated
		if expiry > 0 {
			c.buf, kind = base.AppendExpiry(c.buf, expiry), base.KindSetTTLSeparated
		}
		c.buf = h.Append(c.buf)
		into.Add(kind, e.Key.User, c.buf)
	}
	if f.w.Size() >= c.s.MaxLogFile {
		mem.Seal()
	}
	return nil
}

// begin creates the blob file of a log. When it returns, its name and its header are durable: what may be torn later
// can be told from another's file.
func (c *Commits) begin(log *wal.Writer, mem *memtable.Memtable) error {
	c.Abandon()
	f, err := c.s.create(true)
	if err != nil {
		return err
	}
	if err = f.w.Flush(); err == nil {
		err = f.sync()
	}
	var b *version.Blob
	if err == nil {
		b, err = version.OpenUnfinished(f.Num, &c.s.Blobs, f.log.out.Reader)
	}
	if err != nil {
		f.w.Abandon()
		err = errors.Join(err, f.out.Close())
		f.remove()
		return err
	}
	f.Blob, f.log.mem, c.current = b, mem, f
	mem.Hold(c.s.register(f), 0)
	log.SyncBeside(f.out.Sync)
	return nil
}

// Flush hands all that Put wrote to the operating system.
func (c *Commits) Flush() error {
	f := c.current
	if err := f.w.Flush(); err != nil {
		return err
	}
	c.beginSync()
	size := f.w.Size()
	c.s.Written.Add(uint64(size - f.log.counted))
	f.log.counted = size
	return nil
}

// beginSync begins a sync of the current file if much is in memory. If it fails, so does the store: what the next
// writers hand over would be in a file that is abandoned.
func (c *Commits) beginSync() {
	l := c.current.log
	if l.out.Unsynced() < maxUnsynced || !l.syncing.CompareAndSwap(false, true) {
		return
	}
	c.syncs.Go(func() {
		switch err := l.out.Sync(); {
		case err == nil:
			l.syncing.Store(false)
		case !errors.Is(err, fs.ErrClosed): // else a flush has copied what the file has
			_ = c.s.Fail("syncing a log's blob file", err) // writers get the error
		}
	})
}

// AwaitSyncs waits for the syncs of files of logs that no commit waits for.
func (c *Commits) AwaitSyncs() { c.syncs.Wait() }

// EndLog ends the file of a log that ends.
func (c *Commits) EndLog() error {
	if c.current == nil {
		return nil
	}
	err := c.current.finish()
	if err == nil {
		c.current = nil
	}
	return err
}

// Abandon abandons the file of a log that is abandoned: it is never finished.
func (c *Commits) Abandon() {
	if f := c.current; f != nil {
		f.w.Abandon()
		c.current = nil
	}
}
