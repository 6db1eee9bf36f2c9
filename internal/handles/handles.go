// Package handles tracks a store's open handles, so that closing the store can tell where they leak.
package handles

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

// A List counts the open handles of one kind, and knows where each was opened if it was added with trace set.
type List struct {
	count atomic.Int64

	mu     sync.Mutex
	stacks map[any][]uintptr
}

// maxStack bounds the frames kept of a stack.
const maxStack = 16

// Add adds a handle. Its stack begins above frames above the caller.
func (l *List) Add(x any, trace bool, above int) {
	l.count.Add(1)
	if !trace {
		return
	}
	var pcs [maxStack]uintptr
	n := runtime.Callers(2+above, pcs[:])
	l.mu.Lock()
	if l.stacks == nil {
		l.stacks = map[any][]uintptr{}
	}
	l.stacks[x] = append([]uintptr(nil), pcs[:n]...)
	l.mu.Unlock()
}

// Remove removes a handle; trace must be as it was for Add.
func (l *List) Remove(x any, trace bool) {
	l.count.Add(-1)
	if trace {
		l.mu.Lock()
		delete(l.stacks, x)
		l.mu.Unlock()
	}
}

// Count returns how many handles are open.
func (l *List) Count() int { return int(l.count.Load()) }

// Leaked returns an error that matches sentinel if any handle is open; what is the word for one of them.
func (l *List) Leaked(sentinel error, what string) error {
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
