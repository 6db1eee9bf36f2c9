// Package compare reads stores from end to end and says whether they have the same keys with the same values and
// moments of expiry.
package compare

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/source"
)

// A Side is what a store has. Digest is the sum of the XXH64 of all entries, each as a uvarint of its key's length, one
// of its value's, the key, the value, and the moment of its expiry if there is one: microseconds since 1970 in eight
// bytes, the lowest first. So it is the same however a store is cut into ranges. That keys ascend is seen to by itself.
type Side struct {
	Keys, Bytes int64
	Digest      uint64
}

// A Scanner reads a range of a store: source.Store is one.
type Scanner interface {
	Scan(r source.Range, visit source.Visitor) error
}

// An Input is a store that is compared. Ranges are read each by itself, several at once; together they are all keys.
type Input struct {
	Scanner
	Ranges []source.Range
	// Progress, unless nil, is called now and then, by several goroutines at once: the range has been read up to
	// key; all of it if that is nil.
	Progress func(r source.Range, key []byte)
}

const often = 64 << 10 // bytes from a look at ctx to the next

func (in *Input) read(ctx context.Context, r source.Range) (Side, error) {
	var sum sum
	var last []byte
	var looked int64
	err := in.Scan(r, func(e *source.Entry) error {
		if sum.Keys > 0 && bytes.Compare(e.Key, last) <= 0 {
			return fmt.Errorf("a store %w: key %.64q comes after %.64q", source.ErrDamaged, e.Key, last)
		}
		last = append(last[:0], e.Key...)
		sum.entry(e)
		if sum.Bytes-looked < often {
			return nil
		}
		looked = sum.Bytes
		if in.Progress != nil {
			in.Progress(r, e.Key)
		}
		return ctx.Err()
	})
	if err == nil && in.Progress != nil {
		in.Progress(r, nil)
	}
	return sum.Side, err
}

// A sum is what has been read of a store so far.
type sum struct {
	Side
	text []byte
}

func (s *sum) entry(e *source.Entry) {
	s.Keys++
	s.Bytes += int64(len(e.Key) + len(e.Value))
	s.text = binary.AppendUvarint(s.text[:0], uint64(len(e.Key)))
	s.text = binary.AppendUvarint(s.text, uint64(len(e.Value)))
	s.text = append(append(s.text, e.Key...), e.Value...)
	if !e.Expiry.IsZero() {
		s.text = binary.LittleEndian.AppendUint64(s.text, uint64(e.Expiry.UnixMicro()))
	}
	s.Digest += xxhash.Sum64(s.text)
}

func (s *Side) add(other Side) {
	s.Keys += other.Keys
	s.Bytes += other.Bytes
	s.Digest += other.Digest
}

// A Reading is a store that is read for another purpose, and then need not be read again to be compared. Each range is
// scanned once.
type Reading struct {
	source.Store

	mu   sync.Mutex
	side Side
}

// Scan implements source.Store.
func (s *Reading) Scan(r source.Range, visit source.Visitor) error {
	var sum sum
	err := s.Store.Scan(r, func(e *source.Entry) error {
		sum.entry(e)
		return visit(e)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.side.add(sum.Side)
	return err
}

// Side returns what was read.
func (s *Reading) Side() Side {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.side
}

// Read reads stores side by side, each in as many goroutines, and stops at the first error.
func Read(ctx context.Context, threads int, inputs ...Input) ([]Side, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var reading sync.WaitGroup
	var mu sync.Mutex // for sides
	sides := make([]Side, len(inputs))
	for i, in := range inputs {
		var next atomic.Int64
		for range min(threads, len(in.Ranges)) {
			reading.Go(func() {
				for n := next.Add(1); n <= int64(len(in.Ranges)) && ctx.Err() == nil; n = next.Add(1) {
					side, err := in.read(ctx, in.Ranges[n-1])
					if err != nil {
						cancel(err)
						return
					}
					mu.Lock()
					sides[i].add(side)
					mu.Unlock()
				}
			})
		}
	}
	reading.Wait()
	return sides, context.Cause(ctx)
}

// Difference says where two stores begin to differ; "" if they do not.
func Difference(ctx context.Context, a, b Scanner) (string, error) {
	var errs [2]error
	nextA, stopA := iter.Pull(entries(ctx, a, &errs[0]))
	defer stopA()
	nextB, stopB := iter.Pull(entries(ctx, b, &errs[1]))
	defer stopB()
	for {
		x, moreX := nextA()
		y, moreY := nextB()
		order := bytes.Compare(x.Key, y.Key)
		switch {
		case errs[0] != nil || errs[1] != nil:
			return "", errors.Join(errs[0], errs[1])
		case !moreX && !moreY:
			return "", nil
		case !moreY || moreX && order < 0:
			return fmt.Sprintf("only the source has key %.64q", x.Key), nil
		case !moreX || order > 0:
			return fmt.Sprintf("the source has no key %.64q", y.Key), nil
		case !bytes.Equal(x.Value, y.Value):
			return fmt.Sprintf("the values of key %.64q differ", x.Key), nil
		case x.Expiry.UnixMicro() != y.Expiry.UnixMicro():
			return fmt.Sprintf("the moments at which key %.64q expires differ", x.Key), nil
		}
	}
}

var errStopped = errors.New("no more is wanted")

// entries returns a sequence of a store's entries. An error other than one of its end is put into err.
func entries(ctx context.Context, s Scanner, err *error) iter.Seq[source.Entry] {
	return func(yield func(source.Entry) bool) {
		scanned := s.Scan(source.Range{}, func(e *source.Entry) error {
			if !yield(*e) {
				return errStopped
			}
			return ctx.Err()
		})
		if !errors.Is(scanned, errStopped) {
			*err = scanned
		}
	}
}
