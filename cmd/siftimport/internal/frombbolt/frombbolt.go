// Package frombbolt reads the file of a bbolt store: all of its buckets, or one.
package frombbolt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/source"
)

// A store is a source.Store.
type store struct {
	db     *bbolt.DB
	path   string
	bucket [][]byte // nil: all
	size   int64

	read               int64 // bytes, by the scan
	sequences, buckets int   // buckets with a sequence number; within the one that was chosen, and left out
}

// Open opens a file. With a bucket, given by its name and those of the buckets that it is in, only its own keys are
// there, without a prefix.
func Open(path string, bucket [][]byte) (source.Store, error) {
	s := &store{path: path, bucket: bucket}
	if err := source.Guard(s.open); err != nil {
		return nil, s.explain(err)
	}
	return s, nil
}

func (s *store) open() error {
	info, err := os.Stat(s.path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Size() == 0:
		return fmt.Errorf("%s %w", s.path, source.ErrNoStore)
	}
	const atOnce = time.Nanosecond // zero would wait for ever
	s.db, err = bbolt.Open(s.path, 0, &bbolt.Options{ReadOnly: true, Timeout: atOnce})
	if err != nil || s.bucket == nil {
		s.size = info.Size()
		return err
	}
	s.size = info.Size()
	err = s.db.View(func(tx *bbolt.Tx) error {
		if find(tx, s.bucket) == nil {
			return fmt.Errorf("%s has no bucket %q", s.path, bytes.Join(s.bucket, []byte("/")))
		}
		return nil
	})
	if err != nil {
		err = errors.Join(err, s.db.Close())
	}
	return err
}

func find(tx *bbolt.Tx, path [][]byte) *bbolt.Bucket {
	b := tx.Bucket(path[0])
	for _, name := range path[1:] {
		if b == nil {
			return nil
		}
		b = b.Bucket(name)
	}
	return b
}

func (s *store) Scan(r source.Range, visit source.Visitor) error {
	s.sequences, s.buckets, s.read = 0, 0, 0
	over := make(chan struct{})
	defer close(over)
	go readAhead(s.path, s.size, over)
	return source.Scan(visit, s.explain, func(visit source.Visitor) error {
		return s.db.View(func(tx *bbolt.Tx) error { return s.scan(tx, r.From, visit) })
	})
}

func (s *store) scan(tx *bbolt.Tx, from []byte, visit source.Visitor) error {
	w := &walk{s: s, visit: visit}
	if s.bucket != nil {
		w.from = from
		b := find(tx, s.bucket)
		if b.Sequence() != 0 {
			s.sequences++
		}
		buckets, err := w.keys(b)
		s.buckets = buckets
		return err
	}
	if from != nil {
		path, key, ok := Split(from)
		if !ok {
			return fmt.Errorf("%q is no key of a bucket", from)
		}
		w.path, w.from = path, key
	}
	// The root is a bucket that has buckets and no keys.
	return w.within(tx.Cursor(), tx.Bucket)
}

func (s *store) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, berrors.ErrTimeout):
		return fmt.Errorf("%s %w", s.path, source.ErrInUse)
	case errors.Is(err, berrors.ErrInvalid):
		return fmt.Errorf("%s %w: %w", s.path, source.ErrNoStore, err)
	case errors.Is(err, berrors.ErrVersionMismatch):
		return fmt.Errorf("%s %w: %w", s.path, source.ErrUnsupported, err)
	case errors.Is(err, berrors.ErrChecksum), errors.Is(err, source.ErrDamaged):
		text := strings.TrimPrefix(err.Error(), source.ErrDamaged.Error()+": ")
		return fmt.Errorf("%s %w: %s", s.path, source.ErrDamaged, text)
	}
	return err
}

// Parallel implements source.Store. A scan counts what it drops.
func (*store) Parallel() bool { return false }

// Check implements source.Store. What cannot be read has been an error of the scan.
func (*store) Check() error { return nil }

func (s *store) Size() int64 { return s.size }

// Before implements source.Store. It is what the scan has read, which is a little less than its pages.
func (s *store) Before([]byte) int64 { return s.read }

func (s *store) Notes() (notes []string) {
	if s.sequences > 0 {
		notes = append(notes, fmt.Sprintf("%d buckets had a sequence number (Bucket.Sequence), which is dropped",
			s.sequences))
	}
	if s.buckets > 0 {
		notes = append(notes, fmt.Sprintf("%d buckets in the one that was chosen are left out", s.buckets))
	}
	return notes
}

func (s *store) Close() error { return s.db.Close() }
