package kv

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A merger ends the goroutine of a SetReader that leads a group with an operand in it: the log has the handle, so the
// file stays, and the store can be opened again.
func TestAMergerEndsTheGoroutineOfSetReader(t *testing.T) {
	t.Parallel()
	r := &rudeness{Leave: runtime.Goexit}
	o := Options{harness: harness.Harness{FS: vfs.NewMem()}}
	rudeMerger(&o, r)
	db, err := Open("db", &o)
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("acknowledged"), []byte("1"), Sync))
	r.Armed.Store(true)
	for i := 0; !r.Called.Load(); i++ {
		began, release := make(chan struct{}), make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() {
			_ = db.commits.Exclusive(context.Background(), func() error { close(began); <-release; return nil })
		})
		<-began
		queued := func(n int) { storetest.Until(func() bool { _, q := db.commits.Queue(); return q == n }) }
		all.Go(func() {
			const size = 300 << 10
			value := strings.NewReader(strings.Repeat("x", size))
			_ = db.SetReader(t.Context(), fmt.Appendf(nil, "stream%d", i), size, value, NoSync)
		})
		queued(1)
		all.Go(func() { _ = db.Merge([]byte("counter"), AppendInt64(nil, 1), NoSync) })
		queued(2)
		close(release)
		all.Wait()
	}
	r.Armed.Store(false)
	require.ErrorIs(t, db.Close(), ErrReadOnly)
	db, err = Open("db", &o)
	require.NoError(t, err)
	v, err := db.Get([]byte("acknowledged"))
	require.NoError(t, err)
	require.Equal(t, "1", string(v))
	require.NoError(t, db.Close())
}
