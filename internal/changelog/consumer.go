package changelog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// A Consumer has a slot in another process than the writer of the store. It knows what the files say: which logs are
// kept, and up to where they prove that they are durable. It is safe for concurrent use.
type Consumer struct {
	FS  vfs.FS
	Dir string
	// Poll is how often it looks for changes at least.
	Poll time.Duration
	// Interrupted returns an error if the store is closed, or ctx has ended.
	Interrupted func(ctx context.Context) error

	mu     sync.Mutex
	lock   io.Closer // nil: the slot is closed
	record           // as the slot's file is
	tried  record    // that was to replace it; the file may be this
	lost   error

	tail   *manifest.Tail
	kept   manifest.Kept
	logNum uint64
	tables base.SeqNum // the last write that is in tables, or in the logs of a store that was closed
	edits  unproven    // of the manifest, by the last such write

	logs manifest.LogTail
	live []liveLog // that are read, oldest first

	durable base.SeqNum
	skipped base.SeqNum // the consumer has all up to here, of which some may not be durable
}

// A liveLog is what is known of a log whose writes may not be in tables.
type liveLog struct {
	num     uint64
	last    base.SeqNum
	records unproven
	proven  int64
}

// Open takes the slot with this name. Its errors are those of Log.Open.
func (c *Consumer) Open(ctx context.Context, name string) (acked base.SeqNum, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Name = name
	if !manifest.IsSlotName(name) {
		return 0, fmt.Errorf("%w: %s", errNoSlot, name)
	}
	if _, err := c.fromFile(); err != nil {
		return 0, err // without a file for the lock
	}
	if c.lock, err = lockSlot(c.FS, c.Dir, name); err != nil {
		return 0, err
	}
	if c.record, err = c.fromFile(); err == nil {
		c.durable = c.Acked
		err = c.refresh(ctx)
	}
	if err != nil {
		return 0, errors.Join(err, c.close())
	}
	return c.Acked, nil
}

// fromFile returns what the slot's file says.
func (c *Consumer) fromFile() (record, error) {
	r, err := readRecord(c.FS, filepath.Join(c.Dir, manifest.SlotName(c.Name)))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%w: %s", errNoSlot, c.Name)
	case errors.Is(err, base.ErrCorruption):
		err = lostError(c.Name, err.Error())
	}
	return r, err
}

// Close gives the slot back.
func (c *Consumer) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.close()
}

func (c *Consumer) close() (err error) {
	if c.lock != nil {
		err = errors.Join(c.closeTail(), c.logs.Close(), c.lock.Close())
		c.lock = nil
	}
	return err
}

func (c *Consumer) closeTail() (err error) {
	if c.tail != nil {
		err = c.tail.Close()
	}
	c.tail = nil
	return err
}

// maxRefreshTries bounds how often a refresh begins again since the writer has replaced what it was about to read.
const maxRefreshTries = 100

// refresh reads what is new. The caller holds c.mu.
func (c *Consumer) refresh(ctx context.Context) (err error) {
	interrupted := func() error { return c.Interrupted(ctx) }
	for try := 0; ; try++ {
		switch {
		case c.lock == nil:
			return fmt.Errorf("siftkv: the slot: %w", base.ErrClosed)
		case c.lost != nil:
			return c.lost
		}
		if err = interrupted(); err == nil {
			err = c.readManifest()
		}
		if err == nil {
			err = c.examine()
		}
		if err == nil {
			err = c.readLogs(interrupted)
		}
		if !errors.Is(err, fs.ErrNotExist) || try == maxRefreshTries {
			return err
		}
	}
}

func (c *Consumer) readManifest() error {
	num, err := manifest.Current(c.FS, c.Dir)
	if err == nil && (c.tail == nil || c.tail.Position().Manifest != num) {
		err = c.closeTail()
		c.kept, c.logNum, c.tables, c.edits = manifest.Kept{}, 0, 0, nil
		if err == nil {
			c.tail, err = manifest.OpenTail(c.FS, c.Dir, num)
		}
	}
	if err == nil {
		err = c.tail.Read(func(e *manifest.Edit) error {
			c.kept.Apply(&e.Slots)
			c.logNum = max(c.logNum, e.LogNum)
			c.tables = max(c.tables, e.LastSeq, e.Closed)
			return nil
		})
	}
	if err == nil {
		c.edits.add(c.tail.Position().Offset, c.tables)
		c.durable = max(c.durable, c.edits.prove(c.tail.SyncedTo()))
	}
	return err
}

// examine finds out whether the slot is lost by what the manifest says. It forgets logs whose writes are in tables.
func (c *Consumer) examine() error {
	undone := false
	for len(c.live) > 0 && c.live[0].num < c.logNum {
		// Writes that the log has and tables have not were undone: they failed.
		undone = undone || c.skipped > max(c.durable, c.tables) && c.skipped <= c.live[0].last
		c.live = slices.Delete(c.live, 0, 1)
	}
	switch {
	case c.History == 0 || c.kept.History != c.History || undone:
		c.lost = lostError(c.Name, whyDiverged)
	case c.kept.From > c.Acked:
		c.lost = lostError(c.Name, whyOverrun)
	}
	return c.lost
}

func (c *Consumer) readLogs(interrupted func() error) error {
	c.logs.FS, c.logs.Dir = c.FS, c.Dir
	if err := c.logs.Read(c.logNum, c.take, interrupted); err != nil {
		return err
	}
	if c.last() < c.durable {
		// Other writes have these numbers next. The writer may not know: it shall find that in the slot's file.
		c.lost = lostError(c.Name, whyDiverged)
		c.History = 0
		return errors.Join(c.lost, c.write(c.FS, c.Dir))
	}
	return nil
}

// last returns the last write that is there.
func (c *Consumer) last() base.SeqNum {
	last := c.tables
	for i := range c.live {
		last = max(last, c.live[i].last)
	}
	return last
}

// maxTaken is the size in bytes from which the memory of a record is not retained.
const maxTaken = 1 << 20

// take notes a record of a log, and what marks before it prove: with their log, all logs before it.
func (c *Consumer) take(num uint64, r *wal.Reader, rec []byte) error {
	n := len(c.live)
	if n == 0 || c.live[n-1].num != num {
		c.live, n = append(c.live, liveLog{num: num}), n+1
	}
	l := &c.live[n-1]
	if rec != nil {
		b, err := batchrepr.NewReader(rec)
		if err != nil {
			return &base.CorruptionError{File: manifest.Path(c.Dir, manifest.FileWAL, num), Offset: r.Offset(),
				What: "a record of the log", Cause: err}
		}
		l.last = b.Seq() + base.SeqNum(b.Len()) - 1
		l.records.add(r.End(), l.last)
		if len(rec) > maxTaken {
			_ = r.Take(rec)
		}
	}
	if to := r.SyncedTo(); to > l.proven {
		l.proven = to
		if n > 1 {
			c.durable = max(c.durable, c.live[n-2].last)
		}
		c.durable = max(c.durable, l.records.prove(to))
	}
	return nil
}

// Await returns, once a write after number at is durable, the last one that is known to be.
func (c *Consumer) Await(ctx context.Context, at base.SeqNum) (base.SeqNum, error) {
	for wait := time.Millisecond; ; wait = min(2*wait, c.Poll) {
		durable, err := c.Durable(ctx)
		if err != nil || durable > at {
			return durable, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// Durable returns the last write that is known to be durable.
func (c *Consumer) Durable(ctx context.Context) (base.SeqNum, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.refresh(ctx)
	return c.durable, err
}

// Skip returns the last write that is there. The consumer has all up to number seq.
func (c *Consumer) Skip(ctx context.Context, seq base.SeqNum) (base.SeqNum, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.refresh(ctx)
	if last := c.last(); err != nil || seq > last {
		return last, err
	}
	c.skipped = max(c.skipped, seq)
	return c.last(), nil
}

// Locate returns what has the first write after number at.
func (c *Consumer) Locate(ctx context.Context, at base.SeqNum) (p manifest.KeptPart, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(ctx); err != nil {
		return p, err
	}
	parts := c.kept.Parts
	if i := sort.Search(len(parts), func(i int) bool { return parts[i].Last > at }); i < len(parts) {
		return parts[i], nil
	}
	n := len(c.live)
	for i := range c.live {
		if l := &c.live[i]; i < n-1 && l.last > at {
			return manifest.KeptPart{Log: l.num, Last: l.last}, nil
		}
	}
	p = manifest.KeptPart{Log: c.logNum, Last: base.MaxSeqNum}
	if n > 0 {
		p.Log = c.live[n-1].num
	}
	return p, nil
}

// Ack is Log.Ack. A write that is not known to be durable is refused, with an error that matches base.ErrNotDurable.
func (c *Consumer) Ack(ctx context.Context, seq base.SeqNum) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(ctx); err != nil || seq <= c.Acked {
		return err
	}
	if seq > c.durable {
		return fmt.Errorf("%w: %d was acknowledged, and %d is durable so far; try again", base.ErrNotDurable, seq,
			c.durable)
	}
	now, err := c.fromFile()
	switch {
	case err != nil:
		return err
	case now == c.tried:
		c.record = now
	case now != c.record:
		c.lost = lostError(c.Name, whyDiverged)
		return c.lost
	}
	next := c.record
	next.Acked = seq
	c.tried = next
	if err := next.write(c.FS, c.Dir); err != nil {
		return err
	}
	c.record = next
	return nil
}

// unproven are the ends of records that are not known to be durable, in order, and the last writes up to there.
type unproven []struct {
	end  int64
	last base.SeqNum
}

// maxUnproven bounds their number. If there are more, every other one is forgotten, but never the newest: a mark that
// is between them proves a little less.
const maxUnproven = 4096

func (u *unproven) add(end int64, last base.SeqNum) {
	if n := len(*u); n > 0 && (*u)[n-1].end == end {
		return
	}
	if len(*u) >= maxUnproven {
		for i := range maxUnproven / 2 {
			(*u)[i] = (*u)[2*i+1]
		}
		*u = (*u)[:maxUnproven/2]
	}
	*u = append(*u, struct {
		end  int64
		last base.SeqNum
	}{end, last})
}

// prove takes what ends at offset to or before it, and returns the last write up to there; 0: there is none.
func (u *unproven) prove(to int64) (last base.SeqNum) {
	n := sort.Search(len(*u), func(i int) bool { return (*u)[i].end > to })
	if n > 0 {
		last = (*u)[n-1].last
		*u = slices.Delete(*u, 0, n)
	}
	return last
}

// lockTries bounds attempts to lock a slot: a look at the lock, which takes microseconds, is in the way of one.
const (
	lockTries = 20
	lockPause = time.Millisecond
)

// lockSlot takes the lock of a slot's consumer, which keeps other processes out. The error matches vfs.ErrLocked if
// another consumer has it.
func lockSlot(fsys vfs.FS, dir, slot string) (io.Closer, error) {
	path := filepath.Join(dir, manifest.ConsumerName(slot))
	for try, removed := 1, 0; ; try++ {
		lock, err := fsys.Lock(path, vfs.Exclusive)
		if err == nil {
			// If the file was removed between the moments when it was opened and locked, the name is not locked. There
			// are file systems without locks.
			held, err := isHeld(fsys, path)
			if err != nil {
				return nil, errors.Join(err, lock.Close())
			}
			if held || removed == 2 {
				return lock, nil
			}
			removed++
			err = lock.Close()
		} else if errors.Is(err, vfs.ErrLocked) && try < lockTries {
			time.Sleep(lockPause)
			err = nil
		}
		if errors.Is(err, vfs.ErrLocked) {
			err = fmt.Errorf("siftkv: the slot has a consumer: %w", err)
		}
		if err != nil {
			return nil, err
		}
	}
}

// isHeld reports whether some process has the lock of this name.
func isHeld(fsys vfs.FS, path string) (bool, error) {
	if _, err := fsys.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	lock, err := fsys.Lock(path, vfs.Shared)
	if errors.Is(err, vfs.ErrLocked) {
		return true, nil
	}
	if err == nil {
		err = lock.Close()
	}
	return false, err
}
