// Package frombadger reads stores of Badger version 4 that were closed: the newest version of each key, with its
// expiry.
package frombadger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/source"
)

// A store is a source.Store.
type store struct {
	db    *badger.DB
	log   *logger
	locks []io.Closer
	size  int64
	dir   string
	now   time.Time

	mu     sync.Mutex
	counts map[string]count // of the scans, by the end of their ranges
}

// A count is what a scan has met.
type count struct {
	versions int64 // of keys
	metas    int   // keys with a byte of the user's
}

// Open opens the store in a directory, whose value log is in another or the same. Values that have expired by now are
// left out, whatever time it is when they are read. Scratch is an empty directory, which may go after Close.
func Open(dir, valueDir, scratch string, now time.Time) (source.Store, error) {
	dirs := []string{dir}
	if valueDir != "" && valueDir != dir {
		dirs = append(dirs, valueDir)
	}
	s := &store{log: &logger{}, size: source.DirSize(dirs...), dir: dir, now: now,
		counts: map[string]count{}}
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

func (s *store) Scan(r source.Range, visit source.Visitor) error {
	return source.Scan(visit, s.explain, func(visit source.Visitor) error {
		n := count{}
		if err := s.scan(r, visit, &n); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.counts[string(r.To)] = n // a scan from a later key on has the same end
		return nil
	})
}

func (*store) Parallel() bool { return true }

// Check implements source.Store. A block that cannot be read ends its table for Badger's iterators, and they go on
// with others.
func (s *store) Check() error {
	if s.total().versions == s.entries() {
		return nil
	}
	return s.explain(source.Guard(s.db.VerifyChecksum))
}

func (s *store) total() (sum count) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.counts {
		sum.versions += n.versions
		sum.metas += n.metas
	}
	return sum
}

// entries returns how many versions the tables have.
func (s *store) entries() (n int64) {
	for _, t := range s.db.Tables() {
		n += int64(t.KeyCount)
	}
	return n
}

// scan goes over all versions of all keys of a range, and visits the newest of each key that is there.
func (s *store) scan(r source.Range, visit source.Visitor, n *count) error {
	txn := s.db.NewTransactionAt(math.MaxUint64, false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{AllVersions: true, InternalAccess: true})
	defer it.Close()
	var e source.Entry
	last, begun := []byte{}, false
	for it.Seek(r.From); it.Valid(); it.Next() {
		item := it.Item()
		key := item.Key()
		if r.To != nil && bytes.Compare(key, r.To) >= 0 {
			break
		}
		n.versions++
		switch {
		case bytes.HasPrefix(key, internalKeys):
			continue
		case begun && bytes.Equal(key, last):
			if err := s.refuseOperands(txn, item); err != nil {
				return err
			}
			continue
		}
		last, begun = append(last[:0], key...), true
		if !s.live(item) {
			continue
		}
		e.Key, e.Expiry = key, time.Time{}
		if at := item.ExpiresAt(); at != 0 {
			e.Expiry = time.Unix(int64(min(at, lastSecond)), 0)
		}
		if item.UserMeta() != 0 {
			n.metas++
		}
		err := item.Value(func(value []byte) error {
			if err := s.log.failure(); err != nil {
				return err
			}
			e.Value = value
			return visit(&e)
		})
		if err != nil {
			return err
		}
	}
	return s.log.failure()
}

// lastSecond is the last that a value of package kv, which counts microseconds, can end at: in the year 294247.
const lastSecond = math.MaxInt64 / 1_000_000

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

func (s *store) Size() int64 { return s.size }

func (s *store) Notes() []string {
	metas := s.total().metas
	if metas == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d keys had a byte of metadata (UserMeta), which is dropped", metas)}
}

// Before implements source.Store. Of a table that has keys on both sides a part counts as if they were spread evenly,
// and of the value log as much as of the tables.
func (s *store) Before(key []byte) int64 {
	var before, all float64
	for _, t := range s.db.Tables() {
		all += float64(t.OnDiskSize)
		before += float64(t.OnDiskSize) * part(key, userKey(t.Left), userKey(t.Right))
	}
	if all == 0 {
		return -1
	}
	return int64(before / all * float64(s.size))
}

// userKey returns a key as Badger has it in tables without its version.
func userKey(key []byte) []byte { return key[:max(len(key)-8, 0)] }

// part returns how much of what is from left to right is before key, if it is spread evenly.
func part(key, left, right []byte) float64 {
	switch {
	case bytes.Compare(key, left) <= 0:
		return 0
	case bytes.Compare(key, right) > 0:
		return 1
	}
	same := 0
	for same < len(left) && left[same] == right[same] {
		same++
	}
	number := func(key []byte) float64 {
		var digits [8]byte
		copy(digits[:], key[same:])
		return float64(binary.BigEndian.Uint64(digits[:]))
	}
	from, to := number(left), number(right)
	if to <= from {
		return 0
	}
	return (number(key) - from) / (to - from)
}

func (s *store) Close() error { return errors.Join(s.db.Close(), s.unlock()) }
