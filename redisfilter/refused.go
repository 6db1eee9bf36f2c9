package redisfilter

import (
	"fmt"
	"slices"

	"github.com/siftkv/siftkv/redisfilter/internal/cuckootable"
)

// A RefusedError says which keys of a call a cuckoo set refused. The others were added. It matches ErrFull,
// ErrTooManyCopies, or both. Its indices ascend.
type RefusedError struct {
	Full          []int // of keys that found no room
	TooManyCopies []int // of keys that were there too often
}

func (e *RefusedError) Error() string {
	if len(e.Full) == 0 {
		return fmt.Sprintf("%v (%d keys)", ErrTooManyCopies, len(e.TooManyCopies))
	}
	return fmt.Sprintf("%v (%d keys)", ErrFull, len(e.Full)+len(e.TooManyCopies))
}

// Unwrap returns what the error matches.
func (e *RefusedError) Unwrap() (all []error) {
	if len(e.Full) != 0 {
		all = append(all, ErrFull)
	}
	if len(e.TooManyCopies) != 0 {
		all = append(all, ErrTooManyCopies)
	}
	return all
}

func (e *RefusedError) note(key int, a cuckootable.Answer) {
	switch a {
	case cuckootable.Full:
		e.Full = append(e.Full, key)
	case cuckootable.TooManyCopies:
		e.TooManyCopies = append(e.TooManyCopies, key)
	}
}

// sort puts the indices in order, for has.
func (e *RefusedError) sort() {
	slices.Sort(e.Full)
	slices.Sort(e.TooManyCopies)
}

func (e *RefusedError) has(key int) bool {
	_, full := slices.BinarySearch(e.Full, key)
	_, often := slices.BinarySearch(e.TooManyCopies, key)
	return full || often
}

func (e *RefusedError) orNil() error {
	if len(e.Full)+len(e.TooManyCopies) == 0 {
		return nil
	}
	return e
}
