package changelog

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
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
