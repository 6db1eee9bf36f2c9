package blob

import (
	"errors"
	"math"

	"github.com/siftkv/siftkv/internal/vfs"
)

// LogFiles has one blob file open of those that the records of a log have handles of: such handles follow each other. A
// file may be without a footer: it grows as long as its log does.
type LogFiles struct {
	// Open opens a file, and returns its path.
	Open func(num uint64) (f vfs.ReadFile, name string, err error)
	Hint string // as in ReaderOptions

	num uint64
	r   *Reader // nil: none is open
}

// Reader returns a reader of a file. It is valid until the next call.
func (l *LogFiles) Reader(num uint64) (*Reader, error) {
	if l.r != nil && l.num == num {
		return l.r, nil
	}
	if err := l.Close(); err != nil {
		return nil, err
	}
	f, name, err := l.Open(num)
	if err != nil {
		return nil, err
	}
	r, _, err := OpenUnfinished(f, math.MaxInt64/2, ReaderOptions{Name: name, Hint: l.Hint})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	l.num, l.r = num, r
	return r, nil
}

// Close closes the file that is open.
func (l *LogFiles) Close() (err error) {
	if l.r != nil {
		err = l.r.Close()
	}
	l.r = nil
	return err
}
