// Package frompebble reads stores of Pebble, those of its versions 1 and 2 that version 2 reads: format major versions
// from FormatFlushableIngest on.
package frompebble

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/source"
)

// A store is a source.Store.
type store struct {
	source.Whole
	db   *pebble.DB
	lock io.Closer
	size int64
	dir  string
}

// Open opens the store in a directory. Scratch is an empty directory, which may go after Close.
func Open(dir, scratch string) (source.Store, error) {
	lock, err := source.RecordLock(filepath.Join(dir, "LOCK"))
	if err != nil {
		return nil, err
	}
	s := &store{lock: lock, size: source.DirSize(dir), dir: dir}
	if err := source.Guard(func() error { return s.open(scratch) }); err != nil {
		return nil, errors.Join(s.explain(err), lock.Close())
	}
	return s, nil
}

func (s *store) open(scratch string) error {
	shadow, err := source.Shadow(scratch, []string{"LOCK"}, s.dir)
	if err != nil {
		return err
	}
	desc, err := pebble.Peek(shadow, vfs.Default)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w; stores of Pebble v1 are read from FormatFlushableIngest (13) on: "+
			"DB.RatchetFormatMajorVersion takes an older one there", source.ErrUnsupported, err)
	case !desc.Exists:
		return s.missing()
	}
	if err := s.checkRecords(desc.ManifestFilename); err != nil {
		return err
	}
	merger, err := mergerOf(desc.OptionsFilename)
	if err != nil {
		return err
	}
	log := &logger{}
	s.db, err = pebble.Open(shadow, &pebble.Options{ReadOnly: true, Logger: log, Merger: merger, CacheSize: 8 << 20})
	if err != nil {
		return err
	}
	return s.refuseRangeKeys()
}

// missing says what is there instead of a store.
func (s *store) missing() error {
	if _, err := os.Stat(filepath.Join(s.dir, "CURRENT")); err == nil {
		return fmt.Errorf("%s %w: it has a file CURRENT, as stores of LevelDB and those of Pebble v1 before "+
			"FormatVersioned have: open the latter with Pebble v1 and DB.RatchetFormatMajorVersion", s.dir,
			source.ErrNoStore)
	}
	return fmt.Errorf("%s %w", s.dir, source.ErrNoStore)
}

// refuseRangeKeys returns an error if the store has range keys, which no store of package kv has.
func (s *store) refuseRangeKeys() error {
	it, err := s.db.NewIter(&pebble.IterOptions{KeyTypes: pebble.IterKeyTypeRangesOnly})
	if err != nil {
		return err
	}
	if it.First() {
		start, _ := it.RangeBounds()
		err = fmt.Errorf("%w: it has range keys, the first at %.64q", source.ErrUnsupported, start)
	}
	return errors.Join(err, it.Close())
}

func (s *store) Scan(r source.Range, visit source.Visitor) error {
	return source.Scan(visit, s.explain, func(visit source.Visitor) error {
		it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: r.From, UpperBound: r.To})
		if err != nil {
			return err
		}
		var e source.Entry
		for ok := it.First(); ok && err == nil; ok = it.Next() {
			if e.Value, err = it.ValueAndErr(); err == nil {
				e.Key = it.Key()
				err = visit(&e)
			}
		}
		return errors.Join(err, it.Close())
	})
}

func (s *store) explain(err error) error {
	if err == nil || errors.Is(err, source.ErrDamaged) || !pebble.IsCorruptionError(err) {
		return err
	}
	return fmt.Errorf("%s %w: %w", s.dir, source.ErrDamaged, err)
}

func (s *store) Size() int64 { return s.size }

func (s *store) Before(key []byte) int64 {
	n, err := s.db.EstimateDiskUsage(nil, key)
	if err != nil {
		return -1
	}
	return int64(n)
}

func (s *store) Close() error { return errors.Join(s.db.Close(), s.lock.Close()) }
