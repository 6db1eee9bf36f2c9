package kv

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
)

// A handleList knows the open handles of one kind, iterators or transactions, and
// where each was opened.
type handleList[H comparable] struct {
	mu   sync.Mutex
	open map[H][]uintptr
}

// maxStack bounds the frames kept for a handle.
const maxStack = 16

// add notes a handle. Its stack begins so many frames above the caller.
func (l *handleList[H]) add(h H, above int) {
	var pcs [maxStack]uintptr
	n := runtime.Callers(2+above, pcs[:])
	l.mu.Lock()
	if l.open == nil {
		l.open = map[H][]uintptr{}
	}
	l.open[h] = append([]uintptr(nil), pcs[:n]...)
	l.mu.Unlock()
}

func (l *handleList[H]) remove(h H) {
	l.mu.Lock()
	delete(l.open, h)
	l.mu.Unlock()
}

// len returns how many are open.
func (l *handleList[H]) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// leaked returns an error that wraps sentinel and names the handles, which are of
// a kind, that are still open; nil if none is.
func (l *handleList[H]) leaked(kind string, sentinel error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) == 0 {
		return nil
	}
	var b strings.Builder
	n := 0
	for _, pcs := range l.open {
		n++
		fmt.Fprintf(&b, "\n%s %d of %d was opened at:", kind, n, len(l.open))
		frames := runtime.CallersFrames(pcs)
		for {
			f, more := frames.Next()
			fmt.Fprintf(&b, "\n\t%s\n\t\t%s:%d", f.Function, f.File, f.Line)
			if !more {
				break
			}
		}
	}
	return fmt.Errorf("%w:%s", sentinel, b.String())
}
