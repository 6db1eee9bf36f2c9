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
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/vfs"
)

// The contents of a store are its sorted files and blob files with a checksum of each, and the lists of them.
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
		f, ok, err := in.NextFile()
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
		c.files[f.File], c.bytes = sum.Sum64(), c.bytes+f.Size
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
		fsys, dir = f, objectdir.Root
	}
	got, err := listed(fsys, dir)
	if err != nil {
		return fmt.Errorf("the copy in %s cannot be read: %w", l, err)
	}
	if len(got.tables) != len(sent.edit.Added) || len(got.blobs) != len(sent.edit.AddedBlobs) {
		return fmt.Errorf("%w: the copy in %s has %d sorted files and %d blob files, and its source has %d and %d",
			errDamage, l, len(got.tables), len(got.blobs), len(sent.edit.Added), len(sent.edit.AddedBlobs))
	}
	m := p.meter("verify", sent.bytes)
	defer m.end()
	same := func(equal bool, kind manifest.FileKind, num, id uint64) error {
		name := manifest.FileName(kind, num)
		if !equal {
			return fmt.Errorf("%w: the copy in %s lists %s otherwise than its source", errDamage, l, name)
		}
		sum, err := sumOf(ctx, fsys, filepath.Join(dir, name), m)
		if err != nil {
			return fmt.Errorf("the copy in %s cannot be read: %w", l, err)
		}
		if sum != sent.files[backup.File{Num: num, ID: id}] {
			return fmt.Errorf("%w: %s of the copy in %s is not as it was sent", errDamage, name, l)
		}
		return nil
	}
	for _, a := range sent.edit.Added {
		t := &a.Table
		if err := same(reflect.DeepEqual(got.tables[t.Num], a), manifest.FileTable, t.Num, t.ID); err != nil {
			return err
		}
	}
	for _, b := range sent.edit.AddedBlobs {
		if err := same(got.blobs[b.Num] == b, manifest.FileBlob, b.Num, b.ID); err != nil {
			return err
		}
	}
	return nil
}

// A listing is what the manifest of a store lists that was restored and not opened since.
type listing struct {
	tables map[uint64]manifest.AddedTable
	blobs  map[uint64]manifest.BlobFile
}

func listed(fsys vfs.FS, dir string) (listing, error) {
	got := listing{map[uint64]manifest.AddedTable{}, map[uint64]manifest.BlobFile{}}
	num, err := manifest.Current(fsys, dir)
	if err != nil {
		return got, err
	}
	return got, manifest.Load(fsys, dir, num, func(e *manifest.Edit) error {
		for _, a := range e.Added {
			got.tables[a.Table.Num] = a
		}
		for _, b := range e.AddedBlobs {
			got.blobs[b.Num] = b
		}
		return nil
	})
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
