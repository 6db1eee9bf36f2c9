package changelog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/objectdir"
)

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
	switch {
	case err == nil:
		c.record = now
	case errors.Is(err, base.ErrFenced):
		c.lost = claimedError(c.Name, err)
		return c.lost
	}
	return err
}

// claimedError says that another consumer has opened a slot. The error matches base.ErrFenced.
func claimedError(slot string, err error) error {
	return fmt.Errorf("siftkv: slot %s: another consumer has opened it: %w", slot, err)
}

func (*objectAccess) diverged(*Consumer) error { return nil } // the writer finds it in the position
