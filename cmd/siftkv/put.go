package main

import (
	"context"
	"io"

	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/kv"
)

// putCommand is the command line of siftkv put.
type putCommand struct {
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
	set := func(db *kv.DB) error { return db.Set(key, value, kv.Sync) }
	if c.Create {
		err = c.with(nil, set)
	} else {
		err = c.write(nil, set)
	}
	if err == nil && p.JSON {
		return p.printJSON(map[string]any{"put": p.KeyFormat.JSON(key), "bytes": len(value)}, false)
	}
	return err
}

func (c *putCommand) value(ctx context.Context, p *program) ([]byte, error) {
	if c.Value != nil && c.From != "" {
		return nil, usagef("there are two values: an argument and --from %s", c.From)
	}
	if c.From == "" {
		if c.Value == nil {
			return nil, usagef("there is no value: give one, or --from FILE")
		}
		return p.parse("value", *c.Value)
	}
	in, err := p.openStreams(ctx, string(c.From), "read the value")
	if err != nil {
		return nil, err
	}
	defer in.close()
	// No more is read than shows that the value is too large: a device may have no end.
	return io.ReadAll(io.LimitReader(in, kv.MaxValueSize+1))
}
