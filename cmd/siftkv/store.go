package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// Dir is the argument of commands that open a store.
type Dir struct {
	Dir cli.Directory `arg:"" help:"Directory of the store."`
}

// read opens the store read-only for the time of a call.
func (d *Dir) read(f func(db *kv.DB) error) error { return d.with(&kv.Options{ReadOnly: true}, f) }

// write opens the store, which must be there, for the time of a call.
func (d *Dir) write(o *kv.Options, f func(db *kv.DB) error) error {
	if _, err := os.Stat(string(d.Dir)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w in %s", kv.ErrNotExist, d.Dir)
	}
	if entries, err := os.ReadDir(string(d.Dir)); err == nil && len(entries) == 0 {
		return fmt.Errorf("%w in %s: the directory is empty", kv.ErrNotExist, d.Dir)
	}
	return d.with(o, f)
}

func (d *Dir) with(o *kv.Options, f func(db *kv.DB) error) (err error) {
	db, err := kv.Open(string(d.Dir), o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return f(db)
}

// TableFlags say how commands that rewrite tables write them.
type TableFlags struct {
	Filter      string `default:"blocked:10" placeholder:"SPEC" help:"Filter of new files (default ${default}): compact rewrites files that have another one."`
	Compression string `default:"snappy" enum:"none,snappy,zstd" help:"Compression of new files (default ${default})."`
}

func (f *TableFlags) options() (*kv.Options, error) {
	policy, err := filterpolicy.Parse(f.Filter)
	if err != nil {
		return nil, usagef("%w", err)
	}
	compression, err := sstable.ParseCompression(f.Compression)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return &kv.Options{Filter: policy, Compression: compression}, nil
}
