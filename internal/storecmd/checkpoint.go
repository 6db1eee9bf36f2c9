package storecmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
)

type checkpointCommand struct {
	Dir
	Out string `arg:"" help:"${checkpoint_out}"`
}

func (c *checkpointCommand) Run(ctx context.Context, p *program) error {
	if c.Dir.Dir.remote() {
		return c.pin(ctx, p)
	}
	out := Location(c.Out)
	if err := out.onDisk("siftkv copy copies to it"); err != nil {
		return err
	}
	if err := out.Validate(); err != nil {
		return usagef("%w", err)
	}
	err := c.writeOrRead(ctx, p, func(db *kv.DB) error { return db.Checkpoint(ctx, c.Out) },
		func(db *kv.DB) error {
			_, err := (&copyCommand{From: c.Dir.Dir, To: out}).copy(ctx, p, db)
			return err
		})
	if err == nil {
		p.answer(object{"checkpoint", out.name()}, "")
	}
	return err
}

func (c *checkpointCommand) pin(ctx context.Context, p *program) error {
	if !plainName(c.Out) {
		return usagef("%q is no name of a checkpoint in an object store: want 1 to 48 letters, digits, and -_.; "+
			"siftkv copy copies a store to a directory", c.Out)
	}
	return c.onBranch(ctx, p, func(o *objects.Config) error {
		info, err := o.PinCheckpoint(ctx, c.Out)
		if err != nil {
			return err
		}
		p.answer(object{"checkpoint", info.Name, "of", c.Dir.Dir.name(), "created", instant(info.Created),
			"bytes", info.Bytes}, "%s: checkpoint of %s: %d bytes\n", info.Name, c.Dir.Dir, info.Bytes)
		return nil
	})
}

// onBranch calls f with a branch in an object store: the URL must not name a checkpoint.
func (d *Dir) onBranch(ctx context.Context, p *program, f func(*objects.Config) error) error {
	if err := d.Dir.inObjects(); err != nil {
		return err
	}
	a, err := d.Dir.address()
	switch {
	case err != nil:
		return err
	case a.checkpoint != "":
		return usagef("%s is a checkpoint; the command wants a branch: leave checkpoint= out", a)
	}
	return d.objects(ctx, p, f)
}

// onStore calls f with the whole store in an object store: the URL must not name less.
func (d *Dir) onStore(ctx context.Context, p *program, f func(*objects.Config) error) error {
	if a, err := d.Dir.address(); err == nil && d.Dir.remote() && (a.branch != "" || a.checkpoint != "") {
		return usagef("%s is one branch, and the command is for the whole store: leave branch= and checkpoint= out", a)
	}
	return d.onBranch(ctx, p, f)
}

// list prints a row for each of what a store has; if that is nothing, there must be a store.
func list[T any](ctx context.Context, p *program, d *Dir, all []T, err error, row func(*T) (object, error)) error {
	if err == nil && len(all) == 0 {
		err = d.exists(ctx, p)
	}
	var rows []object
	for i := 0; i < len(all) && err == nil; i++ {
		var o object
		o, err = row(&all[i])
		rows = append(rows, o)
	}
	if err != nil {
		return err
	}
	return p.table(rows)
}

// dropped prints what was dropped, unless that failed.
func (d *Dir) dropped(p *program, name string, err error) error {
	if err == nil {
		p.answer(object{"dropped", keytext.Name(name), "of", d.Dir.name()}, "")
	}
	return err
}

// objects calls f with a store in an object store, without opening it.
func (d *Dir) objects(ctx context.Context, p *program, f func(*objects.Config) error) error {
	o, err := p.objects(ctx, d.Dir, false)
	if err != nil {
		return err
	}
	if err = f(o); err != nil {
		err = fmt.Errorf("%w (objects: %s)", err, d.Dir)
	}
	return errors.Join(err, o.Store.Close())
}

func (l Location) inObjects() error {
	if !l.remote() {
		return usagef("%s is a directory, and only stores in object stores have branches, and checkpoints that share "+
			"files: siftkv checkpoint makes a copy, with links", l)
	}
	return nil
}

// instant is a time in JSON and text.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

type checkpointsCommand struct{ Dir }

func (c *checkpointsCommand) Run(ctx context.Context, p *program) error {
	return c.onBranch(ctx, p, func(o *objects.Config) error {
		all, err := o.Checkpoints(ctx)
		return list(ctx, p, &c.Dir, all, err, func(info *objects.CheckpointInfo) (object, error) {
			files, err := c.files(ctx, p, info)
			return object{"checkpoint", info.Name, "created", instant(info.Created), "files", files,
				"bytes", info.Bytes, "unfinished", info.Unfinished}, err
		})
	})
}

// files counts the sorted files and blob files of a checkpoint, which is found unfinished if it was dropped meanwhile.
func (c *checkpointsCommand) files(ctx context.Context, p *program, info *objects.CheckpointInfo) (n int, err error) {
	if info.Unfinished {
		return 0, nil
	}
	a, err := c.Dir.Dir.address()
	if err != nil {
		return 0, err
	}
	a.checkpoint = info.Name
	f, err := p.freezeAt(ctx, a)
	if errors.Is(err, kv.ErrNotExist) {
		info.Unfinished = true
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // it was read only
	names, err := f.List(objectdir.Root)
	for _, name := range names {
		switch kind, _ := manifest.ParseFileName(filepath.Base(name)); kind {
		case manifest.FileTable, manifest.FileBlob:
			n++
		}
	}
	return n, err
}

type dropCheckpointCommand struct {
	Dir
	Name string `arg:"" help:"Name of the checkpoint."`
}

func (c *dropCheckpointCommand) Run(ctx context.Context, p *program) error {
	return c.onBranch(ctx, p, func(o *objects.Config) error {
		return c.dropped(p, c.Name, o.DropCheckpoint(ctx, c.Name))
	})
}
