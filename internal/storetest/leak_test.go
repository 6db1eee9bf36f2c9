package storetest

import (
	"context"
	"runtime/pprof"
	"testing"

	"github.com/stretchr/testify/require"
)

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
