package storecmd

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/keyformat"
	"github.com/siftkv/siftkv/kv"
)

type changesCommand struct {
	Dir
	Slot     string   `required:"" placeholder:"NAME" help:"Name of the slot: siftkv create-slot makes one."`
	Prefix   []string `sep:"none" placeholder:"KEY" help:"${changes_prefix}"`
	KeysOnly bool     `help:"Leave the values out."`
	Limit    int      `placeholder:"N" help:"Print no more than N commits."`
	UntilNow bool     `help:"End once the writes are printed that the store has now, in place of waiting for more."`
	Peek     bool     `help:"Acknowledge nothing: the next run prints the same changes again."`
}

// Run prints an object for each commit.
func (c *changesCommand) Run(ctx context.Context, p *program) error {
	if c.Limit < 0 {
		return usagef("--limit is %d: want 0, for no limit, or more", c.Limit)
	}
	var prefixes [][]byte
	for _, text := range c.Prefix {
		prefix, err := p.parse("--prefix", text)
		if err != nil {
			return err
		}
		prefixes = append(prefixes, prefix)
	}
	return c.consume(ctx, p, func(*kv.DB) error { return nil },
		func(db *kv.DB) error { return c.print(ctx, p, db, prefixes) })
}

func (c *changesCommand) print(ctx context.Context, p *program, db *kv.DB, prefixes [][]byte) (err error) {
	slot, err := c.openSlot(db, c.Slot)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, slot.Close()) }()
	d, n, now := p.display(), 0, lastWrite(db, c.Slot)
	defer func() { d.end() }()
	each := consumer{db: c.refreshed(db), slot: slot, prefixes: prefixes, bounded: c.UntilNow, until: now, peek: c.Peek,
		makeDurable: p.out.Flush}
	each.deliver = func(change *kv.Change) (last bool, err error) {
		if err := c.change(ctx, p, change); err != nil {
			return false, err
		}
		n++
		d.show("changes", n, 0, "commits")
		if change.Last() >= now { // the reader waits for it
			err = p.out.Flush()
		}
		return n == c.Limit, err
	}
	return each.run(ctx)
}

// openSlot opens a slot, and says how to make one.
func (d *Dir) openSlot(db *kv.DB, name string) (*kv.Slot, error) {
	slot, err := db.OpenSlot(name)
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case missing && d.Dir.remote():
		err = fmt.Errorf("%w; %s", err, createsSlot)
	case missing:
		err = fmt.Errorf("%w; siftkv create-slot makes one, or DB.CreateSlot of the program that has the store open",
			err)
	}
	return slot, err
}

// change prints a change: piece by piece, as it may be long. What breaks off has no newline at its end.
func (c *changesCommand) change(ctx context.Context, p *program, change *kv.Change) error {
	p.printf(`{"first":%d,"last":%d,"ingested":%t,"writes":[`, change.First(), change.Last(), change.Ingested())
	if err := change.Replay(&writePrinter{ctx: ctx, p: p, keysOnly: c.KeysOnly}); err != nil {
		return err
	}
	p.printf("]}\n")
	return p.printed()
}

// A writePrinter prints the writes of a change as objects with commas between them. It is a kv.Writer.
type writePrinter struct {
	ctx      context.Context
	p        *program
	keysOnly bool
	n        int
}

// print prints a write. Without an end, the object goes on.
func (w *writePrinter) print(ended bool, kind base.Kind, key []byte, more ...any) error {
	if w.n++; w.n > 1 {
		w.p.printf(",")
	}
	var b bytes.Buffer
	o := append(object{"kind", kind.String(), "key", w.p.formatted(key)}, more...)
	if err := encodeJSON(&b, o, ""); err != nil {
		return err
	}
	line := strings.TrimSuffix(b.String(), "\n")
	if !ended {
		line = strings.TrimSuffix(line, "}")
	}
	w.p.printf("%s", line)
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	return w.p.printed()
}

// value is a value in an object; nil leaves it out.
func (w *writePrinter) value(value []byte) any {
	if w.keysOnly {
		return nil
	}
	return w.p.formatted(value)
}

func (w *writePrinter) Set(key, value []byte) error {
	return w.print(true, base.KindSet, key, "value", w.value(value))
}

func (w *writePrinter) SetUntil(key, value []byte, expiry time.Time) error {
	return w.print(true, base.KindSet, key, "value", w.value(value), "expiry", moment(uint64(expiry.UnixMicro())))
}

func (w *writePrinter) Merge(key, operand []byte) error {
	return w.print(true, base.KindMerge, key, "value", w.value(operand))
}

func (w *writePrinter) Delete(key []byte) error { return w.print(true, base.KindDelete, key) }

func (w *writePrinter) DeleteRange(lo, hi []byte) error {
	var end any
	if hi != nil {
		end = w.p.formatted(hi)
	}
	return w.print(true, base.KindRangeDelete, lo, "end", end)
}

// SetReader prints a value that is not in memory as a whole, unless that is what its format needs.
func (w *writePrinter) SetReader(key []byte, size int64, r io.Reader) error {
	switch {
	case w.keysOnly:
		return w.Set(key, nil)
	case size <= kv.MaxValueSize:
		value := make([]byte, size)
		if _, err := io.ReadFull(r, value); err != nil {
			return err
		}
		return w.Set(key, value)
	}
	if err := w.print(false, base.KindSet, key); err != nil {
		return err
	}
	before, after := `,"value":{"base64":"`, `"}}`
	if w.p.KeyFormat != keyformat.Text {
		before, after = `,"value":"`, `"}`
	}
	w.p.printf("%s", before)
	to := base64.NewEncoder(base64.StdEncoding, w.p.out)
	if w.p.KeyFormat == keyformat.Hex {
		to = unended{hex.NewEncoder(w.p.out)}
	}
	_, err := io.Copy(to, r)
	if err = errors.Join(err, to.Close()); err == nil {
		w.p.printf("%s", after)
	}
	return err
}

// unended is a writer without an end of its own.
type unended struct{ io.Writer }

func (unended) Close() error { return nil }
