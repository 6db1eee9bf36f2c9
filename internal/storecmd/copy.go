package storecmd

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/kv"
)

type copyCommand struct {
	From       Location `arg:"" help:"${store}"`
	To         Location `arg:"" help:"${copy_to}"`
	SkipVerify bool     `help:"${copy_skip}"`
}

// Run copies the store and compares the copy with what was read.
func (c *copyCommand) Run(ctx context.Context, p *program) error {
	if c.From == c.To {
		return usagef("the copy of %s must go elsewhere", c.To)
	}
	if err := c.To.changes(); err != nil {
		return err
	}
	var sent *contents
	err := (&Dir{c.From}).read(ctx, p, func(db *kv.DB) (err error) {
		sent, err = c.copy(ctx, p, db)
		return err
	})
	if err != nil {
		return err
	}
	verified := ""
	if !c.SkipVerify {
		verified = "; verified: each file was read back, and has the XXH64 of the source's"
		if err = p.compare(ctx, sent, c.To); errors.Is(err, errDamage) {
			return err
		}
		if err != nil { // the store is there, and the command refused if it is run again
			verified = "; not verified: run siftkv verify " + c.To.String()
		}
	}
	p.answer(object{
		"copied", c.From.name(), "to", c.To.name(), "store_id", keytext.ID(sent.edit.StoreID),
		"last_seq", uint64(sent.edit.LastSeq), "files", len(sent.files), "bytes", sent.bytes, "entries", sent.entries(),
		"verified", !c.SkipVerify && err == nil,
	}, "%s: copy of store %016x as of sequence number %d: %d files, %d bytes, %d entries%s\n", c.To, sent.edit.StoreID,
		sent.edit.LastSeq, len(sent.files), sent.bytes, sent.entries(), verified)
	return err
}

// copy sends a view to the destination, and returns what it sent.
func (c *copyCommand) copy(ctx context.Context, p *program, db *kv.DB) (sent *contents, err error) {
	to, o := string(c.To), (*kv.Options)(nil)
	if c.To.remote() {
		objects, err := p.objects(ctx, c.To, true)
		if err != nil {
			return nil, err
		}
		defer func() { _ = objects.Store.Close() }() // what it was given was durable
		to, o = "", &kv.Options{Objects: objects}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_, total := size(db)
	m := p.meter("copy", total)
	stream, out := io.Pipe()
	looked, look := io.Pipe()
	summed, backedUp := make(chan error, 1), make(chan error, 1)
	go func() {
		var err error
		sent, err = contentsOf(looked)
		_ = looked.CloseWithError(err)
		summed <- err
	}()
	go func() {
		_, err := db.Backup(ctx, io.MultiWriter(out, look, m), kv.BackupMark{})
		_, _ = out.CloseWithError(err), look.CloseWithError(err)
		backedUp <- err
	}()
	err = kv.Restore(ctx, stream, to, o)
	cancel() // what is left to do is not needed
	_ = stream.CloseWithError(errNotWanted)
	backup, sum := <-backedUp, <-summed
	m.end()
	return sent, c.outcome(err, backup, sum)
}

// errNotWanted ends a backup after its restore has ended.
var errNotWanted = errors.New("the copy has ended")

// outcome returns why a copy broke off: what came first, of what three goroutines say.
func (c *copyCommand) outcome(restored, backedUp, summed error) error {
	var unfinished *kv.RestoreError
	switch {
	case restored == nil:
		return summed
	case backedUp != nil && !errors.Is(backedUp, errNotWanted) && !errors.Is(backedUp, context.Canceled):
		return fmt.Errorf("%s could not be read to its end: %w; the copy is no store, run the command again", c.From,
			backedUp)
	case errors.As(restored, &unfinished):
		return fmt.Errorf("the copy to %s broke off, and is no store; run the command again: %w", c.To, unfinished.Err)
	}
	return fmt.Errorf("%w (copy to %s)", restored, c.To)
}
