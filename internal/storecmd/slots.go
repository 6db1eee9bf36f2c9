package storecmd

import (
	"context"
	"errors"
	"time"

	"github.com/siftkv/siftkv/kv"
)

// Opening an object store to write to it would fence its writer.
const (
	createsSlot = "the program that has the store open makes the slot, with DB.CreateSlot, and then calls Slot.Close"
	dropsSlot   = "the program that has the store open drops the slot, with DB.DropSlot"
)

type slotsCommand struct{ Dir }

// Run prints a row for each slot.
func (c *slotsCommand) Run(ctx context.Context, p *program) error {
	var rows []object
	list := func(db *kv.DB) error {
		for _, s := range db.Slots() {
			rows = append(rows, object{"slot", s.Name, "acked", s.Acked, "behind", s.Behind, "bytes", s.Bytes,
				"since", since(s.Since), "open", s.Open, "lost", s.Lost})
		}
		return nil
	}
	if err := c.read(ctx, p, list); err != nil {
		return err
	}
	return p.table(rows)
}

// since is a time that may be none.
func since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return instant(t)
}

type createSlotCommand struct {
	Dir
	Name string `arg:"" help:"Name of the slot: letters a to z, digits, - and _."`
}

// Run makes a slot whose changes are those from now on.
func (c *createSlotCommand) Run(ctx context.Context, p *program) error {
	if err := c.Dir.Dir.onDisk(createsSlot); err != nil {
		return err
	}
	return c.write(ctx, p, func(db *kv.DB) error {
		slot, snapshot, err := db.CreateSlot(ctx, c.Name)
		if err != nil {
			return err
		}
		p.answer(object{"slot", c.Name, "of", c.Dir.Dir.name(), "acked", slot.Position()},
			"%s: slot of %s, after sequence number %d\n", c.Name, c.Dir.Dir, slot.Position())
		return errors.Join(slot.Close(), snapshot.Close())
	})
}

type dropSlotCommand struct {
	Dir
	Name string `arg:"" help:"Name of the slot."`
}

func (c *dropSlotCommand) Run(ctx context.Context, p *program) error {
	if err := c.Dir.Dir.onDisk(dropsSlot); err != nil {
		return err
	}
	return c.write(ctx, p, func(db *kv.DB) error { return c.dropped(p, c.Name, db.DropSlot(c.Name)) })
}
