package survey

import (
	"errors"
	"io"

	"github.com/siftkv/siftkv/internal/wal"
)

// Records calls visit with every record of a log that checks out, past damage too, and
// fault with what is wrong in between. An error of either ends the walk, io.EOF as the end
// of the log does. What is left over is an error that keeps the rest from being read.
func Records(r *wal.Reader, visit func(offset int64, record []byte) error, fault func(error) error) (left, err error) {
	for {
		record, broken := r.Next()
		switch {
		case errors.Is(broken, io.EOF):
			return nil, nil
		case broken == nil:
			err = visit(r.Offset(), record)
		default:
			err = fault(broken)
		}
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if broken != nil && !r.Skip() {
			if _, left := r.Next(); !errors.Is(left, io.EOF) {
				return left, nil
			}
			return nil, nil
		}
	}
}
