package kv

import (
	"bytes"
	"context"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

var leakGroups atomic.Int64

// withoutLeaks runs f and returns when all goroutines that came of it have ended; who
// leaks one waits for ever. Goroutines inherit the profiling label of the one that
// starts them, so that tests that run in parallel do not get in each other's way.
func withoutLeaks(f func()) {
	group := strconv.FormatInt(leakGroups.Add(1), 10)
	pprof.Do(context.Background(), pprof.Labels("leaks", group), func(context.Context) { f() })
	until(func() bool { return goroutinesOf(group) == "" })
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

// Tables that a reader gives back while the store closes are closed, whoever of the two
// comes first.
func TestTablesThatAreGivenBackBesideCloseAreClosed(t *testing.T) {
	db := openMem(t, nil)
	set(t, db, "k", "v")
	require.NoError(t, db.Flush())
	open := db.current.Levels[0].Tables[0]
	_, err := open.Open(&db.tables)
	require.NoError(t, err)
	c := &cleaner{}
	c.wake.L = &c.mu
	c.table(open)
	require.NoError(t, c.drain(db)) // by a reader, before the cleaner has ended
	require.NotNil(t, open.Reader.Load(), "the cleaner sees to it")
	c.stopped = true
	require.NoError(t, c.drain(db))
	require.Nil(t, open.Reader.Load())
}
