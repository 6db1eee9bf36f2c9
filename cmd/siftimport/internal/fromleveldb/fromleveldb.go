// Package fromleveldb reads stores of goleveldb with its bytewise order of keys.
package fromleveldb

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/syndtr/goleveldb/leveldb"
	lerrors "github.com/syndtr/goleveldb/leveldb/errors"
	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/syndtr/goleveldb/leveldb/storage"
	"github.com/syndtr/goleveldb/leveldb/util"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/source"
)

// A store is a source.Store.
type store struct {
	source.Whole
	db    *leveldb.DB
	files *overlay
	lock  io.Closer
	size  int64
	dir   string
}

// Open opens the store in a directory. Scratch is an empty directory, which may go after Close.
func Open(dir, scratch string) (source.Store, error) {
	lock, err := source.Flock(filepath.Join(dir, "LOCK"))
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
	if current, err := filepath.Glob(filepath.Join(s.dir, "CURRENT*")); err != nil || len(current) == 0 {
		if _, err := os.ReadDir(s.dir); err != nil {
			return err
		}
		return fmt.Errorf("%s %w", s.dir, source.ErrNoStore)
	}
	shadow, err := source.Shadow(scratch, []string{"LOCK"}, s.dir)
	if err != nil {
		return err
	}
	below, err := storage.OpenFile(shadow, true)
	if err != nil {
		return err
	}
	s.files = newOverlay(below)
	// All is strict: goleveldb by itself leaves out what it cannot read of a journal.
	s.db, err = leveldb.Open(s.files, never(opt.Options{ErrorIfMissing: true, Strict: opt.StrictAll,
		BlockCacheCapacity: 32 << 20}))
	if err == nil {
		if err = s.db.SetReadOnly(); err == nil {
			return nil
		}
		err = errors.Join(err, s.db.Close())
	}
	return errors.Join(err, s.files.Close())
}

func (s *store) Scan(r source.Range, visit source.Visitor) error {
	return source.Scan(visit, s.explain, func(visit source.Visitor) error {
		it := s.db.NewIterator(&util.Range{Start: r.From, Limit: r.To},
			&opt.ReadOptions{DontFillCache: true, Strict: opt.StrictAll})
		defer it.Release()
		var e source.Entry
		for it.Next() {
			e.Key, e.Value = it.Key(), it.Value()
			if err := visit(&e); err != nil {
				return err
			}
		}
		return it.Error()
	})
}

func (s *store) explain(err error) error {
	switch {
	case err == nil || errors.Is(err, source.ErrDamaged):
		return err
	case lerrors.IsCorrupted(err):
		return fmt.Errorf("%s %w: %w (where that is a journal, cut short by a crash, goleveldb drops its end when "+
			"it opens the store to write)", s.dir, source.ErrDamaged, err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s %w: %w", s.dir, source.ErrDamaged, err)
	}
	return err
}

func (s *store) Size() int64 { return s.size }

func (s *store) Before(key []byte) int64 {
	n, err := s.db.SizeOf([]util.Range{{Limit: key}})
	if err != nil {
		return -1
	}
	return n.Sum()
}

func (s *store) Close() error { return errors.Join(s.db.Close(), s.files.Close(), s.lock.Close()) }
