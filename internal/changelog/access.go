package changelog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/objectdir"
)

// An access is how a consumer reads and acknowledges a slot: in a directory, or in an object store. All but Close is
// called with the consumer's mu held.
type access interface {
	open(ctx context.Context, c *Consumer) error // takes the slot: the lock, the record, and what is durable
	examine(c *Consumer) error                   // is called when the manifest was read
	ack(c *Consumer, seq base.SeqNum) error      // makes an acknowledgement durable, or loses the slot
	diverged(c *Consumer) error                  // tells the writer that it has lost what the consumer has

	Within(ctx context.Context) (end func()) // see objectdir.Directory
	LookAgain()
	Close() error
}

// maxRefreshTries bounds how often a refresh begins again since the writer has removed what it was about to read, and
// maxFarTries in an object store, where each try is a LIST.
const (
	maxRefreshTries = 100
	maxFarTries     = 3
)

// A diskAccess is that to a store in a directory. The consumer has the slot's lock, and writes the slot's file.
type diskAccess struct{}

func (diskAccess) open(_ context.Context, c *Consumer) (err error) {
	if _, err = c.fromFile(); err != nil {
		return err // and no file for the lock is made
	}
	if c.lock, err = lockSlot(c.FS, c.Dir, c.Name); err == nil {
		c.record, err = c.fromFile()
		c.durable = c.Acked
	}
	return err
}

func (diskAccess) examine(c *Consumer) error {
	c.inLogs = true
	return nil
}

func (diskAccess) ack(c *Consumer, seq base.SeqNum) error {
	now, err := c.fromFile()
	has := func(u undone) bool { return u.from < seq && seq <= u.to }
	if err == nil && (now.History != c.History || slices.ContainsFunc(c.undone, has)) {
		err = c.lose(whyDiverged)
	}
	if err != nil {
		return err
	}
	now.Acked = max(now.Acked, seq) // it is more if an attempt has failed after all
	err = fs.ErrNotExist
	for try := 0; try < maxRefreshTries && errors.Is(err, fs.ErrNotExist); try++ {
		err = now.write(c.FS, c.Dir) // a writer that opens the store removes files that are written at that moment
	}
	if err == nil {
		c.record = now
		c.undone = slices.DeleteFunc(c.undone, func(u undone) bool { return u.to <= seq })
	}
	return err
}

func (diskAccess) diverged(c *Consumer) error { return c.write(c.FS, c.Dir) }

func (diskAccess) Within(context.Context) (end func()) { return func() {} }
func (diskAccess) LookAgain()                          {}
func (diskAccess) Close() error                        { return nil }

// An objectAccess is that to a store in an object store. The consumer has the claim to the slot's positions. When the
// next consumer ends the claim, this one learns it from its next acknowledgement.
type objectAccess struct {
	objectdir.Directory
	positions objectdir.Positions
	tried     base.SeqNum // the last write that was acknowledged, or may be
}

func (a *objectAccess) open(ctx context.Context, c *Consumer) error {
	defer a.Within(ctx)()
	err := c.readManifest()
	if err == nil {
		_, err = c.fromFile()
	}
	if err != nil {
		return err // and nothing is claimed
	}
	a.positions = a.Positions(c.Name)
	text, err := a.positions.Claim(ctx, true)
	if err != nil {
		return err
	}
	c.lock = io.NopCloser(nil)
	r, err := positionOf(c.Name, text)
	if err == nil {
		err = c.readManifest() // what consumers before have acknowledged, in the writer's process too
	}
	if err == nil {
		c.record, err = c.fromFile()
	}
	if err == nil && r.History == c.History {
		c.Acked = max(c.Acked, r.Acked)
	}
	c.durable, a.tried = max(c.tables, c.Acked), c.Acked // if it is more than there is, it is lost
	return err
}

// examine looks whether the slot is still the consumer's, by what the list of files says.
func (a *objectAccess) examine(c *Consumer) error {
	c.durable = max(c.durable, c.tables)
	r, err := c.fromFile()
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrLost):
		c.lost = err
	case err != nil:
		return err // which may pass
	case r.History != c.History:
		return c.lose(whyDiverged)
	case r.Acked > a.tried:
		c.lost = claimedError(c.Name, base.ErrFenced)
	default:
		c.Acked = max(c.Acked, r.Acked) // the attempt has not failed after all
	}
	return c.lost
}

func (a *objectAccess) ack(c *Consumer, seq base.SeqNum) error {
	a.tried = max(a.tried, seq) // an attempt before, which seemed to fail, may have been made
	now := c.record
	now.Acked = a.tried
	err := a.positions.Put(context.Background(), string(now.sealed()))
	if err == nil {
		c.record = now
	} else if errors.Is(err, base.ErrFenced) {
		err = claimedError(c.Name, err)
		c.lost = err
	}
	return err
}

func (*objectAccess) diverged(*Consumer) error { return nil } // the writer finds it in the position

// claimedError says that another consumer has opened a slot. The error matches base.ErrFenced.
func claimedError(slot string, err error) error {
	return fmt.Errorf("siftkv: slot %s: another consumer has opened it: %w", slot, err)
}
