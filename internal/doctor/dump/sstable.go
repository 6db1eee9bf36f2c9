package dump

import (
	"errors"
	"os"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/sstable"
)

// An Entry is a version of a key, or a tombstone. Its slices are valid during the
// call that got it.
type Entry struct {
	Seq   uint64
	Kind  string
	Key   []byte
	Value []byte // of a range delete: its end
	// NoEnd is set for a range delete without a bound.
	NoEnd bool
}

func entryOf(k base.InternalKey, value []byte) (Entry, error) {
	e := Entry{Seq: uint64(k.SeqNum()), Kind: k.Kind().String(), Key: k.User, Value: value}
	if k.Kind() != base.KindRangeDelete {
		return e, nil
	}
	end, err := rangedel.DecodeEnd(value)
	e.Value, e.NoEnd = end, end == nil
	return e, err
}

// HasValue reports whether the entry's value means something.
func (e *Entry) HasValue() bool { return e.Kind != base.KindDelete.String() && !e.NoEnd }

// SSTable calls f with every entry of a sorted file that checks out: points in order,
// then range deletes. The result says what else the file has, and what is damaged.
func SSTable(path string, f func(Entry) error) (s *sstable.Salvage, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	s, err = sstable.SalvageFile(file, info.Size(), &sstable.SalvageOptions{Name: path},
		func(k base.InternalKey, value []byte) error {
			e, err := entryOf(k, value)
			if err != nil {
				return err
			}
			return f(e)
		})
	if err != nil {
		return nil, err
	}
	for _, t := range s.Tombstones {
		e := Entry{Seq: uint64(t.Seq), Kind: base.KindRangeDelete.String(), Key: t.Start, Value: t.End,
			NoEnd: t.End == nil}
		if err := f(e); err != nil {
			return s, err
		}
	}
	return s, nil
}
