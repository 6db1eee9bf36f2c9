package storecmd

import (
	"cmp"
	"context"

	"github.com/siftkv/siftkv/kv/objects"
)

type cloneCommand struct {
	Dir
	Name       string `arg:"" help:"Name of the new branch."`
	Checkpoint string `placeholder:"NAME" help:"Begin as this checkpoint is: the same as checkpoint=NAME in the URL."`
}

func (c *cloneCommand) Run(ctx context.Context, p *program) error {
	if err := c.Dir.Dir.inObjects(); err != nil {
		return err
	}
	return c.objects(ctx, p, func(o *objects.Config) error {
		if o.Checkpoint != "" && c.Checkpoint != "" {
			return usagef("the URL has checkpoint=, and --checkpoint is given too")
		}
		o.Checkpoint = cmp.Or(o.Checkpoint, c.Checkpoint)
		if err := o.Clone(ctx, c.Name); err != nil {
			return err
		}
		of := ""
		if c.Checkpoint != "" {
			of = "checkpoint " + c.Checkpoint + " of "
		}
		p.answer(object{"clone", c.Name, "of", c.Dir.Dir.name(), "checkpoint", o.Checkpoint}, "%s: clone of %s%s\n",
			c.Name, of, c.Dir.Dir)
		return nil
	})
}

type branchesCommand struct{ Dir }

func (c *branchesCommand) Run(ctx context.Context, p *program) error {
	return c.onStore(ctx, p, func(o *objects.Config) error {
		all, err := o.Branches(ctx)
		return list(ctx, p, &c.Dir, all, err, func(b *objects.BranchInfo) (object, error) {
			return object{"branch", b.Name, "parent", b.Parent, "checkpoint", b.Checkpoint,
				"created", instant(b.Created), "unfinished", b.Unfinished}, nil
		})
	})
}

type dropBranchCommand struct {
	Dir
	Name string `arg:"" help:"Name of the branch."`
}

func (c *dropBranchCommand) Run(ctx context.Context, p *program) error {
	return c.onStore(ctx, p, func(o *objects.Config) error {
		return c.dropped(p, c.Name, o.DropBranch(ctx, c.Name))
	})
}
