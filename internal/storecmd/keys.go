package storecmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
		if c.Raw {
			return p.copyValue(db, key)
		}
		value, err := db.Get(key)
		if err != nil {
			return err
		}
		p.answer(p.pair(key, value), "%s\n", p.KeyFormat.String(value))
		return nil
	})
}

// copyValue prints a value that may be too long for memory. Damage that is found on the way is an error after what was
// whole.
func (p *program) copyValue(db *kv.DB, key []byte) error {
	r, err := db.GetReader(key)
	if err != nil {
		return err
	}
	_, err = io.Copy(valueWriter{p.out}, r)
	return errors.Join(err, r.Close())
}

// A valueWriter returns no error: the buffer keeps it, and flushing that reports it.
type valueWriter struct{ w io.Writer }

func (v valueWriter) Write(b []byte) (int, error) {
	_, _ = v.w.Write(b)
	return len(b), nil
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
	value, long, err := c.value(ctx, p)
	if err != nil {
		return err
	}
	size := int64(len(value))
	if long != nil {
		defer long.close()
		size = long.size
	}
	err = c.writeOrCreate(ctx, p, c.Create, func(db *kv.DB) error {
		if long == nil {
			return db.Set(key, value, kv.Sync)
		}
		return db.SetReader(ctx, key, size, long, kv.Sync)
	})
	if err != nil {
		return err
	}
	p.answer(object{"bytes", size, "put", p.KeyFormat.JSON(key)}, "")
	return nil
}

// value returns the value; or, if it is longer than Set takes, the file to read it from.
func (c *putCommand) value(ctx context.Context, p *program) (value []byte, long *streams, err error) {
	switch {
	case c.Value != nil && c.From != "":
		return nil, nil, usagef("there are two values: an argument and --from %s", c.From)
	case c.Value != nil:
		value, err = p.parse("value", *c.Value)
		return value, nil, err
	case c.From == "":
		return nil, nil, usagef("there is no value: give one, or --from FILE")
	}
	in, err := p.openStreams(ctx, string(c.From), "read the value")
	if err != nil {
		return nil, nil, err
	}
	if in.size > kv.MaxValueSize {
		return nil, in, nil
	}
	defer in.close()
	// No more is read than shows that the value is too large: a device may have no end.
	value, err = io.ReadAll(io.LimitReader(in, kv.MaxValueSize+1))
	if err == nil && len(value) > kv.MaxValueSize {
		err = fmt.Errorf("%w: %s has more than %d bytes; a longer value is taken from a file, which says how long "+
			"it is", kv.ErrTooLarge, c.From, kv.MaxValueSize)
	}
	return value, nil, err
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
