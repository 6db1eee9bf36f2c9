// Package frombadger reads stores of Badger version 4 that were closed: the newest version of each key, with its
// expiry.
package frombadger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/source"
)

type store struct {
	db    *badger.DB
	log   *logger
	locks []io.Closer
	size  int64
	dir   string
	now   time.Time
	metas int // keys with a byte of the user's
}

// Open opens the store in a directory, whose value log is in another or the same. Values that have expired by now are
// left out, whatever time it is when they are read. Scratch is an empty directory, which may go after Close.
func Open(dir, valueDir, scratch string, now time.Time) (source.Store, error) {
	dirs := []string{dir}
	if valueDir != "" && valueDir != dir {
		dirs = append(dirs, valueDir)
	}
	s := &store{log: &logger{}, size: source.DirSize(dirs...), dir: dir, now: now}
	err := s.lock(dirs)
	if err == nil {
		err = source.Guard(func() error { return s.open(scratch, dirs) })
	}
	if err != nil {
		return nil, errors.Join(s.explain(err), s.unlock())
	}
	return s, nil
}

// lock takes the locks that Badger has of its directories.
func (s *store) lock(dirs []string) error {
	for _, dir := range dirs {
		l, err := source.Flock(dir)
		if err != nil {
			return err
		}
		s.locks = append(s.locks, l)
	}
	return nil
}

func (s *store) unlock() (err error) {
	for _, l := range s.locks {
		err = errors.Join(err, l.Close())
	}
	return err
}

func (s *store) open(scratch string, dirs []string) error {
	if _, err := os.Stat(filepath.Join(s.dir, badger.ManifestFilename)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s %w", s.dir, source.ErrNoStore)
	}
	shadow, err := source.Shadow(scratch, []string{"LOCK", "DISCARD"}, dirs...)
	if err != nil {
		return err
	}
	o := badger.DefaultOptions(shadow).WithReadOnly(true).WithLogger(s.log).WithMetricsEnabled(false).
		WithBlockCacheSize(64 << 20).WithVerifyValueChecksum(true).
		WithChecksumVerificationMode(options.OnBlockRead)
	s.db, err = badger.OpenManaged(o) // which reads what other stores have, too
	return err
}

// Scan implements source.Store.
func (s *store) Scan(from []byte, visit source.Visitor) error {
	var stop error
	err := source.Guard(func() (err error) {
		seen := int64(0)
		if seen, stop, err = s.scan(from, visit); err != nil || stop != nil {
			return err
		}
		// A block that cannot be read ends its table for Badger's iterators, and they go on with others.
		if from == nil && seen == s.entries() {
			return nil
		}
		return s.db.VerifyChecksum()
	})
	if stop != nil {
		return stop
	}
	return s.explain(err)
}

// entries returns how many versions the tables have.
func (s *store) entries() (n int64) {
	for _, t := range s.db.Tables() {
		n += int64(t.KeyCount)
	}
	return n
}

// scan goes over all versions of all keys, and visits the newest of each key that is there. Stop is the visitor's
// error.
func (s *store) scan(from []byte, visit source.Visitor) (seen int64, stop, err error) {
	txn := s.db.NewTransactionAt(math.MaxUint64, false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{AllVersions: true, InternalAccess: true})
	defer it.Close()
	s.metas = 0
	var e source.Entry
	last, begun := []byte{}, false
	for it.Seek(from); it.Valid(); it.Next() {
		seen++
		item := it.Item()
		key := item.Key()
		switch {
		case bytes.HasPrefix(key, internalKeys):
			continue
		case begun && bytes.Equal(key, last):
			if err := s.refuseOperands(txn, item); err != nil {
				return seen, nil, err
			}
			continue
		}
		last, begun = append(last[:0], key...), true
		if !s.live(item) {
			continue
		}
		e.Key, e.Expiry = key, time.Time{}
		if at := item.ExpiresAt(); at != 0 {
			e.Expiry = time.Unix(int64(min(at, math.MaxInt64)), 0)
		}
		if item.UserMeta() != 0 {
			s.metas++
		}
		err := item.Value(func(value []byte) error {
			if e.Value = value; s.log.first.Load() == nil {
				stop = visit(&e)
			}
			return nil
		})
		if err == nil {
			err = s.log.failure()
		}
		if err != nil || stop != nil {
			return seen, stop, err
		}
	}
	return seen, nil, s.log.failure()
}

// internalKeys begins the keys that Badger has for itself.
var internalKeys = []byte("!badger!")

// live reports whether an item is neither a tombstone nor a value that had expired when the store was opened.
func (s *store) live(item *badger.Item) bool {
	if at := item.ExpiresAt(); at != 0 {
		return at > uint64(max(s.now.Unix(), 0))
	}
	return !item.IsDeletedOrExpired()
}

// refuseOperands returns an error if the newest version of a key is an operand of a merge operator, given an older one.
// Those are the program's own, and Badger shows the bit that tells only in a text.
func (s *store) refuseOperands(txn *badger.Txn, older *badger.Item) error {
	if !older.DiscardEarlierVersions() && !isOperand(older) {
		return nil
	}
	newest, err := txn.Get(older.Key())
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil
	}
	if err == nil && isOperand(newest) {
		err = fmt.Errorf("%w: %.64q has operands of a merge operator: MergeOperator.Stop writes them as a value",
			source.ErrUnsupported, older.Key())
	}
	return err
}

// isOperand finds the bit of merge entries in what an item says of itself.
func isOperand(item *badger.Item) bool {
	const merge = 1 << 3
	text := item.String()
	meta := 0
	_, err := fmt.Sscanf(text[strings.LastIndex(text, "meta=")+len("meta="):], "%x", &meta)
	return err == nil && meta&merge != 0
}

// explain says what kind of error it is.
func (s *store) explain(err error) error {
	for _, known := range []error{source.ErrDamaged, source.ErrUnsupported, source.ErrNoStore, source.ErrInUse,
		fs.ErrNotExist, fs.ErrPermission} {
		if err == nil || errors.Is(err, known) {
			return err
		}
	}
	switch {
	case says(err, badger.ErrTruncateNeeded):
		return fmt.Errorf("%s was not closed, or %w: Badger brings the former in order when it opens the store "+
			"to write: %w", s.dir, source.ErrDamaged, err)
	case says(err, badger.ErrEncryptionKeyMismatch):
		return fmt.Errorf("%s %w: it is encrypted", s.dir, source.ErrUnsupported)
	}
	return fmt.Errorf("%s %w: %w", s.dir, source.ErrDamaged, err)
}

// says reports whether an error is another, which Badger may have made a text of.
func says(err, what error) bool {
	return errors.Is(err, what) || strings.Contains(err.Error(), what.Error())
}

// Size implements source.Store.
func (s *store) Size() int64 { return s.size }

// Notes implements source.Store.
func (s *store) Notes() []string {
	if s.metas == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d keys had a byte of metadata (UserMeta), which is dropped", s.metas)}
}

// Before implements source.Store. What is in tables before the key counts, and the value log in proportion.
func (s *store) Before(key []byte) int64 {
	var before, all int64
	for _, t := range s.db.Tables() {
		all += int64(t.OnDiskSize)
		if len(t.Right) >= 8 && bytes.Compare(t.Right[:len(t.Right)-8], key) < 0 {
			before += int64(t.OnDiskSize)
		}
	}
	if all == 0 {
		return -1
	}
	return int64(float64(before) / float64(all) * float64(s.size))
}

// Close implements source.Store.
func (s *store) Close() error { return errors.Join(s.db.Close(), s.unlock()) }
