package main

import (
	"bytes"

	"github.com/siftkv/siftkv/kv"
)

// deleteCommand is the command line of siftkv delete.
type deleteCommand struct {
	Dir
	Key string `arg:"" help:"The key, or the first of a range."`
	To  string `placeholder:"KEY" help:"Delete all keys from KEY argument up to this one, which is excluded."`
}

// Run deletes durably. A single key that is not there is exit status 3, and no
// change.
func (c *deleteCommand) Run(p *program) error {
	key, err := p.parse("key", c.Key)
	if err != nil {
		return err
	}
	to, err := p.parseBound("--to", c.To)
	if err != nil {
		return err
	}
	if to != nil && bytes.Compare(key, to) >= 0 {
		return usagef("--to %s is not behind %s", c.To, c.Key)
	}
	err = c.write(nil, func(db *kv.DB) error {
		if to != nil {
			return db.DeleteRange(key, to, kv.Sync)
		}
		if ok, err := db.Has(key); err != nil || !ok {
			if err == nil {
				err = kv.ErrNotFound
			}
			return err
		}
		return db.Delete(key, kv.Sync)
	})
	if err == nil && p.JSON {
		answer := map[string]any{"deleted": p.KeyFormat.JSON(key)}
		if to != nil {
			answer["to"] = p.KeyFormat.JSON(to)
		}
		return p.printJSON(answer, false)
	}
	return err
}
