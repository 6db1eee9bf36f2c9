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
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// A Consumer has a slot in another process than the writer of the store. It knows what the files say: which logs there
// are, and up to where sync marks prove that they are durable. On another machine it knows what the list of files in
// the object store says: all of that is durable, and it has what is in tables. It is safe for concurrent use.
type Consumer struct {
	FS          vfs.FS
	Objects     objectdir.Directory // FS, which the consumer closes; nil: the store is in a directory
	Dir         string
	Poll        time.Duration                   // how often it looks for changes at least
	Interrupted func(ctx context.Context) error // returns an error if the store is closed, or ctx has ended

	// Open sets them.
	access access
	wait   time.Duration // for a write, at first
	tries  int           // to read what the writer may have removed

	mu     sync.Mutex
	lock   io.Closer // nil: the slot is closed
	record           // as the slot's file is
	lost   error     // for ever

	tail   *manifest.Tail
	kept   manifest.Kept
	logNum uint64
	tables base.SeqNum // the last write that is in tables, or in the logs of a store that was closed
	inLogs bool        // there may be writes in logs that the consumer can read
	edits  unproven    // of the manifest, by the last such write
	logs   manifest.LogTail
	live   []liveLog // that are read, oldest first

	durable base.SeqNum
	undone  []undone // oldest first
}

// An undone is writes that were there, and have failed: those after one number, up to another.
type undone struct{ from, to base.SeqNum }

// A liveLog is what is known of a log whose writes may not be in tables.
type liveLog struct {
	num     uint64
	last    base.SeqNum
	records unproven
}

// Open takes the slot with this name. Its errors are those of Log.Open. After one the caller calls Close.
func (c *Consumer) Open(ctx context.Context, name string) (acked base.SeqNum, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.access, c.wait, c.tries = diskAccess{}, time.Millisecond, maxRefreshTries
	if c.Objects != nil {
		c.access, c.wait, c.tries = &objectAccess{Directory: c.Objects}, c.Poll, maxFarTries
	}
	if c.Name = name; !manifest.IsSlotName(name) {
		return 0, errNoSlot("open", name)
	}
	if err = c.access.open(ctx, c); err == nil {
		err = c.refresh(ctx)
	}
	return c.Acked, err
}

// fromFile returns what the slot's file says.
func (c *Consumer) fromFile() (record, error) {
	r, err := readRecord(c.FS, filepath.Join(c.Dir, manifest.SlotName(c.Name)))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = errNoSlot("find", c.Name)
	case errors.Is(err, base.ErrCorruption):
		err = lostError(c.Name, err.Error())
	}
	return r, err
}

// Close gives the slot back. A second Close does nothing.
func (c *Consumer) Close() error {
	err := c.access.Close() // requests end
	c.mu.Lock()
	defer c.mu.Unlock()
	err = errors.Join(err, c.closeTail(), c.logs.Close())
	if c.lock != nil {
		err = errors.Join(err, c.lock.Close())
	}
	c.lock, c.live = nil, nil
	return err
}

func (c *Consumer) closeTail() (err error) {
	if c.tail != nil {
		err = c.tail.Close()
	}
	c.tail = nil
	return err
}

// refresh reads what is new. If the writer has removed what it was about to read, it begins again. The caller holds
// c.mu.
func (c *Consumer) refresh(ctx context.Context) error {
	switch {
	case c.lock == nil:
		return fmt.Errorf("siftkv: the slot: %w", base.ErrClosed)
	case c.lost != nil:
		return c.lost
	}
	defer c.access.Within(ctx)()
	for try := 0; ; try++ {
		err := c.look(ctx)
		if err == nil {
			return nil
		}
		c.access.LookAgain()
		if !errors.Is(err, fs.ErrNotExist) || c.lost != nil || try == c.tries {
			return err
		}
	}
}

// look is refresh once.
func (c *Consumer) look(ctx context.Context) error {
	err := c.Interrupted(ctx)
	if err == nil {
		err = c.readManifest()
	}
	if err == nil {
		err = c.access.examine(c)
	}
	switch {
	case err != nil:
	case c.History == 0 || c.kept.History != c.History:
		err = c.lose(whyDiverged)
	case c.kept.From > c.Acked:
		err = c.lose(whyOverrun)
	case c.inLogs:
		c.logs.FS, c.logs.Dir = c.FS, c.Dir
		err = c.logs.Read(c.logNum, c.take, func() error { return c.Interrupted(ctx) })
	}
	if err == nil && c.last() < c.durable { // other writes have these numbers next
		c.History = 0
		err = errors.Join(c.lose(whyDiverged), c.access.diverged(c))
	}
	return err
}

func (c *Consumer) lose(why string) error {
	c.lost = lostError(c.Name, why)
	return c.lost
}

// readManifest reads what is new in the manifest in force.
func (c *Consumer) readManifest() error {
	num, err := manifest.Current(c.FS, c.Dir)
	if err == nil && (c.tail == nil || c.tail.Position().Manifest != num) {
		c.kept, c.logNum, c.tables, c.inLogs, c.edits = manifest.Kept{}, 0, 0, false, nil
		if err = c.closeTail(); err == nil {
			c.tail, err = manifest.OpenTail(c.FS, c.Dir, num)
		}
	}
	if err == nil {
		err = c.tail.Read(func(e *manifest.Edit) error {
			c.kept.Apply(&e.Slots)
			c.logNum = max(c.logNum, e.LogNum)
			tables := max(c.tables, e.LastSeq)
			c.tables, c.inLogs = max(tables, e.Closed), e.Closed > tables
			return nil
		})
	}
	if err != nil {
		return err
	}
	c.edits.add(c.tail.Position().Offset, c.tables)
	c.durable = max(c.durable, c.edits.prove(c.tail.SyncedTo()))
	c.live = slices.DeleteFunc(c.live, func(l liveLog) bool {
		if l.num < c.logNum && l.last > c.tables {
			c.undone = append(c.undone, undone{c.tables, l.last})
		}
		return l.num < c.logNum
	})
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

// take notes a record of a log, and what marks before it prove: records of the log, and all logs before it.
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
		l.last = b.Last()
		l.records.add(r.End(), l.last)
		if len(rec) > maxTaken {
			_ = r.Take(rec)
		}
	}
	if to := r.SyncedTo(); to > 0 && n > 1 {
		c.durable = max(c.durable, c.live[n-2].last)
	}
	c.durable = max(c.durable, l.records.prove(r.SyncedTo()))
	return nil
}

// Await returns, once a write after number at is durable, the last one that is known to be.
func (c *Consumer) Await(ctx context.Context, at base.SeqNum) (base.SeqNum, error) {
	for wait := c.wait; ; wait = min(2*wait, c.Poll) {
		_, durable, err := c.Range(ctx)
		if err != nil || durable > at {
			return durable, err
		}
		pause(ctx, wait)
	}
}

// Range returns the last write that is there, and the last one that is known to be durable.
func (c *Consumer) Range(ctx context.Context) (last, durable base.SeqNum, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err = c.refresh(ctx)
	return c.last(), c.durable, err
}

// Locate returns what has the first write after number at.
func (c *Consumer) Locate(at base.SeqNum) (p manifest.KeptPart, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(context.Background()); err != nil {
		return p, err
	}
	if p, ok := c.kept.After(at); ok {
		return p, nil
	}
	if !c.inLogs {
		return manifest.KeptPart{Last: c.tables}, nil // writes that failed may have the numbers up to there
	}
	p = manifest.KeptPart{Log: c.logNum, Last: base.MaxSeqNum}
	for i := range c.live {
		l := &c.live[i]
		if p.Log = l.num; i < len(c.live)-1 && l.last > at {
			p.Last = l.last
			break
		}
	}
	return p, nil
}

// maxAckWait is how long an acknowledgement waits for a write to be durable.
const maxAckWait = 5 * time.Second

// Ack is Log.Ack. It waits until the write is durable, but not for a writer that is gone: the error then matches
// base.ErrNotDurable. The writer learns of the acknowledgement later.
func (c *Consumer) Ack(seq base.SeqNum) error {
	ctx, cancel := context.WithTimeout(context.Background(), maxAckWait)
	defer cancel()
	_, durable, err := c.Range(ctx)
	if err == nil && durable < seq {
		_, err = c.Await(ctx, seq-1)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: write %d, which was acknowledged; try again", base.ErrNotDurable, seq)
	} else if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lock == nil || c.lost != nil || seq <= c.Acked {
		return c.refresh(ctx)
	}
	return c.access.ack(c, seq)
}

// ExplainLoss returns why a file that must be there may be gone: the consumer may have seen what is not so any more.
func (c *Consumer) ExplainLoss() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.access.LookAgain()
	return c.refresh(context.Background())
}

// unproven are the ends of records that are not known to be durable, in order, and the last writes up to there.
type unproven []struct {
	end  int64
	last base.SeqNum
}

// maxUnproven bounds their number. Beyond it the newest takes the place of the one before: a mark that is between
// them proves less than it could.
const maxUnproven = 4096

func (u *unproven) add(end int64, last base.SeqNum) {
	n := len(*u)
	if n == 0 || (*u)[n-1].end < end && n < maxUnproven {
		*u = append(*u, make(unproven, 1)...)
		n++
	}
	(*u)[n-1].end, (*u)[n-1].last = end, last
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
