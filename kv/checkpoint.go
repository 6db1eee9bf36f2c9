package kv

import (
	"context"

	"github.com/siftkv/siftkv/internal/backup"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Checkpoint makes a store in dir that is as this one is now: everything that was written before the call is in it.
// Files are linked where the file system can, so that it is quick and takes little space; they are copied otherwise.
// Dir must not exist, or be empty; after an error it is so again. Reads and writes go on meanwhile.
//
// When ctx ends, Checkpoint removes what it has copied, and returns an error that matches ctx.Err().
func (d *DB) Checkpoint(ctx context.Context, dir string) error {
	if err := d.Flush(ctx); err != nil {
		return err
	}
	local := d.opts.harness.FS
	dir, err := vfs.Absolute(local, dir)
	if err != nil {
		return err
	}
	if err := d.readable(); err != nil {
		return err
	}
	v, e := d.pinVersion()
	if v == nil {
		return ErrClosed
	}
	defer d.cleaner.Release(v)
	var names []string
	for b := range v.Blobs() {
		names = append(names, b.Name())
	}
	v.All(func(_ int, t *version.Table) { names = append(names, t.Name()) })
	c := backup.Checkpoint{FS: d.openFiles.Relieve(local), Dir: dir, Source: d.copySource(v), From: d.dir, Names: names,
		Link: d.opts.Objects == nil, Store: e, Save: d.opts.save}
	return c.Write(ctx)
}

// copySource returns the file system from which a version's files are copied.
func (d *DB) copySource(v *version.Version) vfs.FS {
	if d.opts.Objects == nil {
		return d.fs
	}
	ids := map[string]uint64{}
	for b := range v.Blobs() {
		ids[b.Name()] = b.ID
	}
	v.All(func(_ int, t *version.Table) { ids[t.Name()] = t.ID })
	return backup.VerifiedFS{FS: d.fs, IDs: ids, Hint: d.opts.hint(d.dir), Filter: d.opts.Filter, Prefix: d.opts.Prefix}
}
