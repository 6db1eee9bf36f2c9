package storetest

import (
	"bytes"
	"context"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"
)

var leakGroups atomic.Int64

// WithoutLeaks runs f and returns when all goroutines that came of it have ended. One that never ends lets it wait
// until Until panics. Goroutines inherit the profiling label of the one that starts them, so that parallel tests do
// not get in each other's way.
func WithoutLeaks(f func()) {
	group := strconv.FormatInt(leakGroups.Add(1), 10)
	pprof.Do(context.Background(), pprof.Labels("leaks", group), func(context.Context) { f() })
	Until(func() bool { return goroutinesOf(group) == "" })
}

// goroutinesOf returns the stacks of a group's goroutines.
func goroutinesOf(group string) string {
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		return err.Error()
	}
	var left []string
	for stack := range strings.SplitSeq(b.String(), "\n\n") {
		if strings.Contains(stack, `"leaks":"`+group+`"`) {
			left = append(left, stack)
		}
	}
	return strings.Join(left, "\n\n")
}

// goroutines returns how many goroutines stores and their parts have started that run still.
func goroutines() int {
	buf := make([]byte, 1<<20)
	stacks := string(buf[:runtime.Stack(buf, true)])
	n := 0
	for _, maker := range []string{"kv.(*", "internal/nextlog.", "internal/multiget."} {
		n += strings.Count(stacks, "\ncreated by github.com/siftkv/siftkv/"+maker)
	}
	return n
}

// LeakCheck returns a function that returns when no goroutine of a store is left that was not there before. Tests that
// run in parallel to others cannot ask.
func LeakCheck() (noneLeft func()) {
	before := goroutines()
	return func() { Until(func() bool { return goroutines() <= before }) }
}
