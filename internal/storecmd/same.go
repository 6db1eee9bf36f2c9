package storecmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/siftkv/siftkv/kv"
)

// A side is one of two stores that are compared, at one moment. The key under which a copy has its position is no part
// of it.
type side struct {
	name     Location
	snapshot *kv.Snapshot
	it       *kv.Iterator
	valid    bool
}

func (s *side) open() (err error) {
	if s.it, err = s.snapshot.NewIter(nil); err != nil {
		return err
	}
	s.valid = s.it.First()
	s.skip()
	return nil
}

func (s *side) next() {
	s.valid = s.it.Next()
	s.skip()
}

func (s *side) skip() {
	if s.valid && string(s.it.Key()) == positionKey {
		s.valid = s.it.Next()
	}
}

// compare compares the keys of two sides, one of which is valid.
func (s *side) compare(to *side) int {
	switch {
	case !to.valid:
		return -1
	case !s.valid:
		return 1
	}
	return bytes.Compare(s.it.Key(), to.it.Key())
}

// expired reports whether the other side may lack the entry because its moment has come.
func (s *side) expired() bool {
	expiry := s.it.Expiry()
	return !expiry.IsZero() && !expiry.After(time.Now())
}

// A sameness is what two stores have in common. The digest is that of siftimport, the sum of the XXH64 of all entries:
// lengths of key and value as uvarints, key, value, and the moment of the expiry if there is one.
type sameness struct {
	keys   int64
	digest uint64
}

// same compares two stores, entry by entry. If they differ, the error matches errDamage.
func (p *program) same(ctx context.Context, a, b *side) (both sameness, err error) {
	m := p.meter("compare", 0)
	defer m.end()
	for _, s := range []*side{a, b} {
		if err := s.open(); err != nil {
			return both, err
		}
		defer func() { err = errors.Join(err, s.it.Close()) }()
	}
	for n := 0; a.valid || b.valid; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return both, context.Cause(ctx)
		}
		switch order := a.compare(b); {
		case order < 0 && a.expired():
			a.next()
		case order > 0 && b.expired():
			b.next()
		case order < 0:
			return both, differ(a, b, fmt.Sprintf("only %s has key %s", a.name, p.KeyFormat.String(a.it.Key())))
		case order > 0:
			return both, differ(a, b, fmt.Sprintf("only %s has key %s", b.name, p.KeyFormat.String(b.it.Key())))
		default:
			sum, equal, err := entriesEqual(a, b, m)
			if err == nil && !equal {
				err = differ(a, b, "they differ in key "+p.KeyFormat.String(a.it.Key()))
			}
			if err != nil {
				return both, err
			}
			both.keys, both.digest = both.keys+1, both.digest+sum
			a.next()
			b.next()
		}
	}
	return both, errors.Join(a.it.Error(), b.it.Error())
}

// differ is the error of two sides that differ, unless one has just not been read to its end.
func differ(a, b *side, how string) error {
	return cmp.Or(errors.Join(a.it.Error(), b.it.Error()),
		fmt.Errorf("%w: %s is not a copy of %s as of its position: %s", errDamage, b.name, a.name, how))
}

// maxCompared is the length of the values, in bytes, that are compared in memory.
const maxCompared = 1 << 20

// entriesEqual compares the entries with one key, and returns their hash.
func entriesEqual(a, b *side, m *meter) (sum uint64, equal bool, err error) {
	key, size, expiry := a.it.Key(), a.it.ValueSize(), a.it.Expiry()
	if size != b.it.ValueSize() || !expiry.Equal(b.it.Expiry()) {
		return 0, false, nil
	}
	h := xxhash.New()
	head := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(key))), uint64(size))
	to := io.MultiWriter(h, m)
	_, _ = to.Write(append(head, key...)) // neither of them fails
	if size > maxCompared && expiry.IsZero() {
		equal, err = streamsEqual(a, b, key, to)
	} else {
		value := a.it.Value()
		equal = bytes.Equal(value, b.it.Value())
		_, _ = to.Write(value)
	}
	if !expiry.IsZero() {
		_, _ = to.Write(binary.LittleEndian.AppendUint64(nil, uint64(expiry.UnixMicro())))
	}
	return h.Sum64(), equal, err
}

// streamsEqual compares the values of a key, and writes the bytes that are the same.
func streamsEqual(a, b *side, key []byte, to io.Writer) (equal bool, err error) {
	x, err := a.snapshot.GetReader(key)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	y, err := b.snapshot.GetReader(key)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, y.Close()) }()
	piece, other := make([]byte, maxCompared), make([]byte, maxCompared)
	for {
		n, err := io.ReadFull(x, piece)
		if _, err := io.ReadFull(y, other[:n]); err != nil && n > 0 {
			return false, err
		}
		if !bytes.Equal(piece[:n], other[:n]) {
			return false, nil
		}
		_, _ = to.Write(piece[:n])
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return true, nil
		case err != nil:
			return false, err
		}
	}
}
