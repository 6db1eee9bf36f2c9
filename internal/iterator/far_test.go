package iterator

import (
	"bytes"
	"runtime"
	"sync/atomic"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/internal/version"
)

// What an iterator over a store in an object store leaves for the next, of whatever store, refers to nothing
// of that store: not to its bounds of memory, nor to the bounds of its keys.
func TestReleasedSourcesForgetAStoreInAnObjectStore(t *testing.T) {
	var s Sources
	use := func() (weak.Pointer[tablecache.Cache], weak.Pointer[byte]) {
		c := &tablecache.Cache{Far: true}
		lower := bytes.Repeat([]byte{'a'}, 1000)
		v := &version.Version{Runs: []*version.Run{{Level: 1}}}
		s.AddVersion(v, c, lower, nil, nil)
		require.Len(t, s.Iters, 1)
		s.Release()
		return weak.Make(c), weak.Make(&lower[0])
	}
	cache, lower := use()
	runtime.GC()
	require.Nil(t, cache.Value())
	require.Nil(t, lower.Value())
	runtime.KeepAlive(&s)
}

// A range filter that ends the goroutine which moves iterators leaves none of the others at work: what they read from
// may be gone then.
func TestNoMoveOutlivesTheOneThatLeaves(t *testing.T) {
	t.Parallel()
	for _, leave := range []func(){func() { panic("boom") }, runtime.Goexit} {
		m := NewMerging(&Run{}, &Run{}, &memtable.Iter{})
		m.pass = &sstable.Pass{}
		moving := make(chan struct{})
		var moved atomic.Int64
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer func() { _ = recover() }()
			m.rebuildFar(false, func(it Iter) bool {
				if _, ok := it.(*Run); !ok {
					close(moving)
					leave()
				}
				<-moving
				for range 1000 {
					runtime.Gosched()
				}
				moved.Add(1)
				return false
			}, func(*Run) bool { return true })
		}()
		<-ended
		require.EqualValues(t, 2, moved.Load())
		require.False(t, m.pass.Seeking)
	}
}
