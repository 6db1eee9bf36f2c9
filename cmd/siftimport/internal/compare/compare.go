// Package compare reads two stores from end to end and says whether they have the same keys with the same values.
package compare

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/source"
)

// A Side is what a store has. Digest is the XXH64 of all entries in order, each as a uvarint of its key's length, one
// of its value's, the key and the value. Moments of expiry do not count.
type Side struct {
	Keys, Bytes int64
	Digest      uint64
}

// A Scanner reads a store: source.Store is one.
type Scanner interface {
	Scan(from []byte, visit source.Visitor) error
}

const chunkSize = 64 << 10

// Read reads a store. Progress, unless nil, is called now and then with the last key that was read.
func Read(ctx context.Context, s Scanner, progress func(key []byte)) (side Side, err error) {
	digest := xxhash.New()
	var chunk []byte
	err = s.Scan(nil, func(e *source.Entry) error {
		side.Keys++
		side.Bytes += int64(len(e.Key) + len(e.Value))
		chunk = binary.AppendUvarint(chunk, uint64(len(e.Key)))
		chunk = binary.AppendUvarint(chunk, uint64(len(e.Value)))
		chunk = append(append(chunk, e.Key...), e.Value...)
		if len(chunk) < chunkSize {
			return nil
		}
		_, _ = digest.Write(chunk)
		chunk = chunk[:0]
		if progress != nil {
			progress(e.Key)
		}
		return ctx.Err()
	})
	_, _ = digest.Write(chunk)
	side.Digest = digest.Sum64()
	return side, err
}

// Both reads two stores side by side.
func Both(ctx context.Context, a, b Scanner, progress func(key []byte)) (sides [2]Side, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var errs [2]error
	var reading sync.WaitGroup
	reading.Go(func() {
		if sides[1], errs[1] = Read(ctx, b, nil); errs[1] != nil {
			cancel()
		}
	})
	if sides[0], errs[0] = Read(ctx, a, progress); errs[0] != nil {
		cancel()
	}
	reading.Wait()
	if errors.Is(errs[0], context.Canceled) && errs[1] != nil {
		return sides, errs[1] // the other was only told to stop
	}
	if errs[0] != nil {
		return sides, errs[0]
	}
	return sides, errs[1]
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
		}
	}
}

var errStopped = errors.New("nobody asks for more")

// entries returns a sequence of a store's entries. An error other than one of its end is put into err.
func entries(ctx context.Context, s Scanner, err *error) iter.Seq[source.Entry] {
	return func(yield func(source.Entry) bool) {
		scanned := s.Scan(nil, func(e *source.Entry) error {
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
