package storecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"

	"github.com/cespare/xxhash/v2"

	"github.com/siftkv/siftkv/internal/backup"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// The contents of a store are its sorted files with a checksum of each, and the list of them.
type contents struct {
	edit  *manifest.Edit // that describes the store
	files map[backup.File]uint64
	bytes int64 // of the files
}

// entries returns how many entries the files have, of all versions.
func (c *contents) entries() (n uint64) {
	for i := range c.edit.Added {
		n += c.edit.Added[i].Table.Entries
	}
	return n
}

// contentsOf reads a full backup to its end.
func contentsOf(stream io.Reader) (*contents, error) {
	in, err := backup.NewReader(stream)
	if err != nil {
		return nil, err
	}
	c := &contents{files: map[backup.File]uint64{}}
	for {
		f, size, ok, err := in.NextFile()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		sum := xxhash.New()
		for {
			b, err := in.Chunk()
			if err != nil {
				return nil, err
			}
			if b == nil {
				break
			}
			_, _ = sum.Write(b) // it never fails
		}
		c.files[f], c.bytes = sum.Sum64(), c.bytes+size
	}
	c.edit, err = manifest.DecodeEdit(in.Description())
	return c, err
}

// compare reads a copy back, file by file, and returns an error that matches errDamage if it is not what was sent.
func (p *program) compare(ctx context.Context, sent *contents, l Location) (err error) {
	fsys, dir := vfs.OS, string(l)
	if l.remote() {
		f, err := p.freeze(ctx, l)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // it was read only
		fsys, dir = f, objectsRoot
	}
	num, err := manifest.Current(fsys, dir)
	if err != nil {
		return fmt.Errorf("the copy in %s cannot be read: %w", l, err)
	}
	got := map[uint64]manifest.AddedTable{}
	err = manifest.Load(fsys, dir, num, func(e *manifest.Edit) error {
		for _, a := range e.Added {
			got[a.Table.Num] = a
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("the copy in %s cannot be read: %w", l, err)
	}
	m := p.meter("verify", sent.bytes)
	defer m.end()
	for _, a := range sent.edit.Added {
		if !reflect.DeepEqual(got[a.Table.Num], a) {
			return fmt.Errorf("%w: the copy in %s lists table %d otherwise than its source", errDamage, l, a.Table.Num)
		}
		name := manifest.FileName(manifest.FileTable, a.Table.Num)
		sum, err := sumOf(ctx, fsys, filepath.Join(dir, name), m)
		if err != nil {
			return fmt.Errorf("the copy in %s cannot be read: %w", l, err)
		}
		if sum != sent.files[backup.File{Num: a.Table.Num, ID: a.Table.ID}] {
			return fmt.Errorf("%w: %s of the copy in %s is not as it was sent", errDamage, name, l)
		}
	}
	if len(got) != len(sent.edit.Added) {
		return fmt.Errorf("%w: the copy in %s has %d files, and its source has %d", errDamage, l, len(got),
			len(sent.edit.Added))
	}
	return nil
}

// sumOf returns the XXH64 of a file, which it reads whole.
func sumOf(ctx context.Context, fsys vfs.FS, name string, m *meter) (sum uint64, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return 0, err
	}
	part := 1 << 20
	if parts, ok := f.(vfs.PartReader); ok {
		part = max(part, parts.PartSize())
	}
	h, b := xxhash.New(), make([]byte, min(int64(part), size))
	for at := int64(0); at < size; at += int64(len(b)) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		b = b[:min(int64(len(b)), size-at)]
		if n, err := f.ReadAt(b, at); n < len(b) {
			return 0, fmt.Errorf("read %s at offset %d: %w", name, at, err)
		}
		_, _ = h.Write(b) // it never fails
		_, _ = m.Write(b)
	}
	return h.Sum64(), nil
}
