package storecmd

import (
	"context"
	"errors"

	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/kv"
)

type scanCommand struct {
	Dir
	Lower    string `placeholder:"KEY" help:"First key."`
	Upper    string `placeholder:"KEY" help:"Stop before this key."`
	Prefix   string `placeholder:"KEY" help:"Only keys that begin so."`
	Limit    int    `placeholder:"N" help:"Print no more than N keys."`
	Reverse  bool   `help:"Go from the last key to the first."`
	KeysOnly bool   `help:"Leave the values out."`
	Count    bool   `help:"Print how many keys there are, and nothing else."`
}

// Run prints a line per key: key, tab, value.
func (c *scanCommand) Run(ctx context.Context, p *program) error {
	o, err := c.bounds(p)
	if err != nil {
		return err
	}
	return c.read(ctx, p, func(db *kv.DB) (err error) {
		it, err := db.NewIter(o)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, it.Close()) }()
		start, next := it.First, it.Next
		if c.Reverse {
			start, next = it.Last, it.Prev
		}
		n := 0
		for ok := start(); ok && (c.Limit == 0 || n < c.Limit); ok = next() {
			n++
			if n%1024 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if c.print(p, it); p.printed() != nil {
				return p.printed()
			}
		}
		if err := it.Error(); err != nil || !c.Count {
			return err
		}
		p.answer(object{"count", n}, "%d\n", n)
		return nil
	})
}

func (c *scanCommand) print(p *program, it *kv.Iterator) {
	switch {
	case c.Count:
	case p.JSON && c.KeysOnly:
		p.printJSON(entry{Key: p.KeyFormat.JSON(it.Key())})
	case p.JSON:
		p.printJSON(p.pair(it.Key(), it.Value()))
	case c.KeysOnly:
		p.printf("%s\n", p.KeyFormat.String(it.Key()))
	default:
		p.printf("%s\t%s\n", p.KeyFormat.String(it.Key()), p.KeyFormat.String(it.Value()))
	}
}

// bounds are those that both the range and the prefix allow.
func (c *scanCommand) bounds(p *program) (*kv.IterOptions, error) {
	lower, upper, err := p.parseRange(c.Lower, c.Upper)
	if err != nil {
		return nil, err
	}
	prefix, err := p.parseBound("--prefix", c.Prefix)
	if err != nil {
		return nil, err
	}
	if c.Limit < 0 {
		return nil, usagef("--limit is %d: want 0, for no limit, or more", c.Limit)
	}
	return &kv.IterOptions{LowerBound: lower, UpperBound: upper, Prefix: prefix, KeysOnly: c.KeysOnly || c.Count}, nil
}

type explainCommand struct {
	Dir
	Key string `arg:"" help:"The key, which need not be there."`
}

// Run prints what one lookup did, step by step.
func (c *explainCommand) Run(ctx context.Context, p *program) error {
	key, err := p.parse("key", c.Key)
	if err != nil {
		return err
	}
	return c.read(ctx, p, func(db *kv.DB) error {
		e, err := db.Explain(key)
		if err != nil {
			return err
		}
		if !p.JSON {
			p.printf("%s", e)
			return nil
		}
		steps := []object{}
		for _, s := range e.Steps {
			st := object{"source", s.Source}
			if s.Level >= 0 {
				st = append(st, "level", s.Level)
			}
			st = append(st, "verdict", s.Verdict)
			if filter := s.Probe.Filter.String(); s.Level >= 0 && filter != "" {
				st = append(st, "filter", filter)
			}
			steps = append(steps, append(st, "blocks_from_cache", s.Probe.BlocksFromCache,
				"blocks_from_disk", s.Probe.BlocksFromDisk))
		}
		o := object{"covered_by", e.CoveredBy, "found", e.Found, "hash", keytext.ID(e.Hash),
			"key", p.KeyFormat.JSON(e.Key), "steps", steps}
		if a := e.Blob; a != nil {
			o = append(o, "blob", object{"file", a.File, "offset", a.Offset, "stored_bytes", a.Stored,
				"bytes", a.Size})
		}
		p.indentJSON(o)
		return nil
	})
}
