package sequence

import (
	"errors"
	"fmt"
)

// Errors of calls, in addition to those of package objstore and base.ErrCorruption; match them with errors.Is.
var (
	// ErrFenced says that another writer has opened the sequence since. The error is a *FencedError.
	ErrFenced = errors.New("siftkv: another writer has taken over")

	// ErrMoved says that the sequence has grown, and was trimmed, since its tail was read: read it again.
	ErrMoved = errors.New("siftkv: the sequence has moved on since its end was looked up")
)

// A FencedError names the writer that has taken over. It matches ErrFenced.
type FencedError struct {
	Key   string // of the object that stood in the way
	Own   uint64 // the epoch of the writer that was fenced
	Epoch uint64 // that of the other
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("%v: epoch %d, where this one has %d (%s)", ErrFenced, e.Epoch, e.Own, e.Key)
}

// Unwrap returns ErrFenced.
func (e *FencedError) Unwrap() error { return ErrFenced }
