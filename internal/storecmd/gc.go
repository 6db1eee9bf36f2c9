package storecmd

import (
	"context"

	"github.com/siftkv/siftkv/kv/objects"
)

type gcCommand struct{ Dir }

// Run deletes what the branch does not need any more.
func (c *gcCommand) Run(ctx context.Context, p *program) error {
	if !c.Dir.Dir.remote() {
		return usagef("%s is a directory: its writer deletes what it does not need at once", c.Dir.Dir)
	}
	return c.objects(ctx, p, func(o *objects.Config) error {
		got, err := o.Collect(ctx)
		if err != nil {
			return err
		}
		p.answer(object{"files", got.Files, "bytes", got.Bytes, "entries", got.Entries, "of", c.Dir.Dir.name()},
			"deleted %d files of %d bytes, and %d entries\n", got.Files, got.Bytes, got.Entries)
		return nil
	})
}
