package storecmd

import (
	"bytes"
	"context"
	"io"

	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/kv"
)

type getCommand struct {
	Dir
	Key string `arg:"" help:"The key."`
	Raw bool   `help:"Print the value's bytes as they are, without a newline."`
}

// Run prints the value; a key that is not there is exit status 3.
func (c *getCommand) Run(ctx context.Context, p *program) error {
	key, err := p.parse("key", c.Key)
	if err != nil {
		return err
	}
	return c.read(ctx, p, func(db *kv.DB) error {
		value, err := db.Get(key)
		switch {
		case err != nil:
			return err
		case c.Raw:
			_, _ = p.out.Write(value) // the buffer keeps the error
			return nil
		}
		p.answer(p.pair(key, value), "%s\n", p.KeyFormat.String(value))
		return nil
	})
}

// An entry is a key and its value in JSON.
type entry struct {
	Key   any `json:"key"`
	Value any `json:"value,omitempty"`
}

func (p *program) pair(key, value []byte) entry {
	return entry{Key: p.KeyFormat.JSON(key), Value: p.KeyFormat.JSON(value)}
}

type putCommand struct {
	takesOver
	Dir
	Key   string   `arg:"" help:"The key."`
	Value *string  `arg:"" optional:"" help:"The value."`
	From  cli.File `placeholder:"FILE" help:"Take the value from FILE, byte for byte; - is standard input."`
	// Create keeps a mistyped directory from becoming a store.
	Create bool `help:"Create the store if it is not there."`
}

// Run stores the value durably.
func (c *putCommand) Run(ctx context.Context, p *program) error {
	key, err := p.parse("key", c.Key)
	if err != nil {
		return err
	}
	value, err := c.value(ctx, p)
	if err != nil {
		return err
	}
	err = c.writeOrCreate(ctx, p, c.Create, func(db *kv.DB) error { return db.Set(key, value, kv.Sync) })
	if err != nil {
		return err
	}
	p.answer(object{"bytes", len(value), "put", p.KeyFormat.JSON(key)}, "")
	return nil
}

func (c *putCommand) value(ctx context.Context, p *program) ([]byte, error) {
	switch {
	case c.Value != nil && c.From != "":
		return nil, usagef("there are two values: an argument and --from %s", c.From)
	case c.Value != nil:
		return p.parse("value", *c.Value)
	case c.From == "":
		return nil, usagef("there is no value: give one, or --from FILE")
	}
	in, err := p.openStreams(ctx, string(c.From), "read the value")
	if err != nil {
		return nil, err
	}
	defer in.close()
	// No more is read than shows that the value is too large: a device may have no end.
	return io.ReadAll(io.LimitReader(in, kv.MaxValueSize+1))
}

type deleteCommand struct {
	takesOver
	Dir
	Key string `arg:"" help:"The key, or the first of a range."`
	To  string `placeholder:"KEY" help:"Delete all keys from KEY argument up to this one, which is excluded."`
}

// Run deletes durably. A single key that is not there is exit status 3, and no
// change.
func (c *deleteCommand) Run(ctx context.Context, p *program) error {
	key, err := p.parse("key", c.Key)
	if err != nil {
		return err
	}
	to, err := p.parseBound("--to", c.To)
	if err != nil {
		return err
	}
	if to != nil && bytes.Compare(key, to) >= 0 {
		return usagef("--to %s is not after %s", c.To, c.Key)
	}
	answer := object{"deleted", p.KeyFormat.JSON(key)}
	err = c.write(ctx, p, func(db *kv.DB) error {
		if to != nil {
			answer = append(answer, "to", p.KeyFormat.JSON(to))
			return db.DeleteRange(key, to, kv.Sync)
		}
		switch ok, err := db.Has(key); {
		case err != nil:
			return err
		case !ok:
			return kv.ErrNotFound
		}
		return db.Delete(key, kv.Sync)
	})
	if err == nil {
		p.answer(answer, "")
	}
	return err
}
