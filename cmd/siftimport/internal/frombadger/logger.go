package frombadger

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/source"
)

// A logger is a badger.Logger that keeps Badger quiet, and the first of its errors: a value that it cannot read is
// empty, and only the log says why.
type logger struct{ first atomic.Pointer[string] }

func (l *logger) Errorf(format string, args ...any) {
	text := strings.TrimSpace(fmt.Sprintf(format, args...))
	if len(text) > 300 {
		text = text[:300] + "..."
	}
	l.first.CompareAndSwap(nil, &text)
}

func (*logger) Warningf(string, ...any) {}

func (*logger) Infof(string, ...any) {}

func (*logger) Debugf(string, ...any) {}

func (l *logger) failure() error {
	if text := l.first.Load(); text != nil {
		return fmt.Errorf("%w: %s", source.ErrDamaged, *text)
	}
	return nil
}
