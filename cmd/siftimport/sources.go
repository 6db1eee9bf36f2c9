package main

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/frombadger"
	"github.com/siftkv/siftkv/cmd/siftimport/internal/frombbolt"
	"github.com/siftkv/siftkv/cmd/siftimport/internal/fromleveldb"
	"github.com/siftkv/siftkv/cmd/siftimport/internal/frompebble"
	"github.com/siftkv/siftkv/cmd/siftimport/internal/source"
)

// A Source is the argument that names a store: its kind, a colon, its path.
type Source string

// Validate is called by kong.
func (s Source) Validate() error {
	kind, path := s.cut()
	if path == "" || !slices.Contains([]string{"pebble", "leveldb", "badger", "bbolt"}, kind) {
		return fmt.Errorf("%q is none of pebble:DIR, leveldb:DIR, badger:DIR, bbolt:FILE", string(s))
	}
	return nil
}

func (s Source) cut() (kind, path string) {
	kind, path, _ = strings.Cut(string(s), ":")
	return kind, path
}

// open opens the store; started is when the import was.
func (c *command) open(scratch string, started time.Time) (source.Store, error) {
	kind, path := c.Source.cut()
	if info, err := os.Stat(path); err == nil && info.IsDir() == (kind == "bbolt") {
		return nil, fmt.Errorf("%s %w: a store of %s is a %s", path, source.ErrNoStore, kind,
			map[bool]string{true: "file", false: "directory"}[kind == "bbolt"])
	}
	switch kind {
	case "pebble":
		return frompebble.Open(path, scratch)
	case "leveldb":
		return fromleveldb.Open(path, scratch)
	case "badger":
		return frombadger.Open(path, c.BadgerValueDir, scratch, started)
	default:
		return frombbolt.Open(path, c.bucket())
	}
}

// checkSource refuses flags that are for another kind of source.
func (c *command) checkSource() error {
	kind, _ := c.Source.cut()
	switch {
	case c.Bucket != "" && kind != "bbolt":
		return usagef("--bucket is for bbolt: a store of %s has no buckets", kind)
	case c.BadgerValueDir != "" && kind != "badger":
		return usagef("--badger-value-dir is for badger")
	}
	for _, name := range c.bucket() {
		if len(name) == 0 {
			return usagef("--bucket %q: a bucket's name has at least one byte", c.Bucket)
		}
	}
	return nil
}

// bucket returns the names that --bucket has; nil without it.
func (c *command) bucket() (path [][]byte) {
	if c.Bucket == "" {
		return nil
	}
	name := ""
	for part := range strings.SplitSeq(c.Bucket, "/") {
		if before, escaped := strings.CutSuffix(part, `\`); escaped {
			name += before + "/"
			continue
		}
		path = append(path, []byte(name+part))
		name = ""
	}
	return path
}

// contents returns a digest of the names, sizes and times of a source's files, which changes when the source does.
func (c *command) contents() (string, error) {
	_, path := c.Source.cut()
	digest := xxhash.New()
	for _, p := range []string{path, c.BadgerValueDir} {
		if p == "" {
			continue
		}
		if err := describe(digest, p); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%016x", digest.Sum64()), nil
}

// describe adds a file, or the files of a directory, to a digest.
func describe(digest *xxhash.Digest, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	infos := []os.FileInfo{info}
	if info.IsDir() {
		entries, err := os.ReadDir(path)
		if err != nil {
			return err
		}
		infos = infos[:0]
		for _, e := range entries {
			info, err := os.Stat(filepath.Join(path, e.Name()))
			if errors.Is(err, os.ErrNotExist) || e.Name() == "LOCK" {
				continue
			}
			if err != nil {
				return err
			}
			infos = append(infos, info)
		}
	}
	slices.SortFunc(infos, func(a, b os.FileInfo) int { return cmp.Compare(a.Name(), b.Name()) })
	for _, i := range infos {
		b := append([]byte(i.Name()), 0)
		b = binary.LittleEndian.AppendUint64(b, uint64(i.Size()))
		b = binary.LittleEndian.AppendUint64(b, uint64(i.ModTime().UnixNano()))
		_, _ = digest.Write(b)
	}
	return nil
}
