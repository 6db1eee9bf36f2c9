package main

import "github.com/siftkv/siftkv/kv"

// getCommand is the command line of siftkv get.
type getCommand struct {
	Dir
	Key string `arg:"" help:"The key."`
	Raw bool   `help:"Print the value's bytes as they are, without a newline."`
}

// Run prints the value; a key that is not there is exit status 3.
func (c *getCommand) Run(p *program) error {
	key, err := p.parse("key", c.Key)
	if err != nil {
		return err
	}
	return c.read(func(db *kv.DB) error {
		value, err := db.Get(key)
		switch {
		case err != nil:
			return err
		case c.Raw:
			_, err = p.out.Write(value)
			return err
		case p.JSON:
			return p.printJSON(pair(p, key, value), false)
		}
		return p.printf("%s\n", p.KeyFormat.String(value))
	})
}

// An entry is a key and its value in JSON.
type entry struct {
	Key   any `json:"key"`
	Value any `json:"value,omitempty"`
}

func pair(p *program, key, value []byte) entry {
	return entry{Key: p.KeyFormat.JSON(key), Value: p.KeyFormat.JSON(value)}
}
