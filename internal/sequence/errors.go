package sequence

import (
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
)

// ErrMoved says that the sequence has grown, and was trimmed, since its tail was read: read it again. Other errors of
// calls match base.ErrFenced, base.ErrCorruption or those of package objstore.
var ErrMoved = errors.New("siftkv: the sequence has moved on since its end was looked up")

// A FencedError names the writer that has opened the sequence since. It matches base.ErrFenced.
type FencedError struct {
	Key   string // of the object that stood in the way
	Own   uint64 // the epoch of the writer that was fenced
	Epoch uint64 // that of the other
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("%v: epoch %d, where this one has %d (%s)", base.ErrFenced, e.Epoch, e.Own, e.Key)
}

func (e *FencedError) Unwrap() error { return base.ErrFenced }
