package kv

import (
	"bytes"
	"context"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
)

var leakGroups atomic.Int64

// withoutLeaks runs f and returns when all goroutines that came of it have ended; who
// leaks one waits for ever. Goroutines inherit the profiling label of the one that
// starts them, so that tests that run in parallel do not get in each other's way.
func withoutLeaks(f func()) {
	group := strconv.FormatInt(leakGroups.Add(1), 10)
	pprof.Do(context.Background(), pprof.Labels("leaks", group), func(context.Context) { f() })
	storetest.Until(func() bool { return goroutinesOf(group) == "" })
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

func TestALeakIsFound(t *testing.T) {
	stop := make(chan struct{})
	started := make(chan struct{})
	pprof.Do(context.Background(), pprof.Labels("leaks", "own"), func(context.Context) {
		go func() {
			close(started)
			<-stop
		}()
	})
	<-started
	require.Contains(t, goroutinesOf("own"), "TestALeakIsFound")
	close(stop)
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

// leakCheck returns a function that returns when no goroutine of a store is left that
// was not there before; who leaks one waits for ever. Tests that run in parallel to
// others cannot ask.
func leakCheck() (noneLeft func()) {
	before := goroutines()
	return func() { storetest.Until(func() bool { return goroutines() <= before }) }
}
