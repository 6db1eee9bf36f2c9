package kv

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

// An openList counts what is open of one kind, and knows where each was opened if
// Options.TraceOpens is set.
type openList[T comparable] struct {
	count atomic.Int64

	mu     sync.Mutex
	stacks map[T][]uintptr
}

// maxStack bounds the frames kept of a stack.
const maxStack = 16

// add takes one in. Its stack begins so many frames above the caller.
func (l *openList[T]) add(x T, trace bool, above int) {
	l.count.Add(1)
	if !trace {
		return
	}
	var pcs [maxStack]uintptr
	n := runtime.Callers(2+above, pcs[:])
	l.mu.Lock()
	if l.stacks == nil {
		l.stacks = map[T][]uintptr{}
	}
	l.stacks[x] = append([]uintptr(nil), pcs[:n]...)
	l.mu.Unlock()
}

func (l *openList[T]) remove(x T, trace bool) {
	l.count.Add(-1)
	if trace {
		l.mu.Lock()
		delete(l.stacks, x)
		l.mu.Unlock()
	}
}

// leaked returns an error that matches sentinel if any is open; what says what they
// are.
func (l *openList[T]) leaked(sentinel error, what string) error {
	n := l.count.Load()
	if n == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.stacks) == 0 {
		return fmt.Errorf("%w: %d; Options.TraceOpens tells where they were opened", sentinel, n)
	}
	var b strings.Builder
	i := 0
	for _, pcs := range l.stacks {
		i++
		fmt.Fprintf(&b, "\n%s %d of %d was opened at:", what, i, len(l.stacks))
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
