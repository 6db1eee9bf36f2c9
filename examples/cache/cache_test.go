package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
)

// startCache returns a cache of a new store, which it follows until the test ends.
func startCache(t *testing.T, o *kv.Options, render func(text []byte) string) *cache {
	t.Helper()
	db, err := kv.Open(t.TempDir(), o)
	require.NoError(t, err)
	c := newCache(db, render)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- c.follow(ctx) }()
	t.Cleanup(func() {
		stop()
		assert.ErrorIs(t, <-ended, context.Canceled)
		assert.NoError(t, db.Close())
	})
	require.NoError(t, db.Set([]byte("first"), nil, nil))
	require.NoError(t, c.wait(1)) // the slot is there
	return c
}

func asIs(text []byte) string { return string(text) }

// Goroutines write pages of their own, and find in the cache what they wrote when it has reached their last write.
// Others read all pages at any time, and so fill it.
func TestNoPageIsStaleOnceTheCacheHasReachedAWrite(t *testing.T) {
	t.Parallel()
	c := startCache(t, &kv.Options{MemtableSize: 64 << 10}, asIs)
	const writers, keys = 3, 8
	key := func(w, i int) []byte { return fmt.Appendf(nil, "page/%d/%d", w, i) }
	var writing, reading sync.WaitGroup
	ended := make(chan struct{})
	for range 2 {
		reading.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-ended:
					return
				default:
					_, _ = c.page(string(key(n%writers, n/writers%keys)))
				}
			}
		})
	}
	for w := range writers {
		writing.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			want := map[int]string{}
			for n := range scale.Count(80, 5000) {
				lo, hi, err := r.IntN(keys), r.IntN(keys+1), error(nil)
				text := fmt.Appendf(nil, "version %d", n)
				switch r.IntN(8) {
				case 0:
					err = c.db.Delete(key(w, lo), kv.NoSync)
					delete(want, lo)
				case 1:
					hi = max(lo, hi)
					err = c.db.DeleteRange(key(w, lo), key(w, hi), kv.NoSync)
					for i := lo; i < hi; i++ {
						delete(want, i)
					}
				case 2:
					err = c.db.SetUntil(key(w, lo), text, time.Now().Add(time.Hour), kv.NoSync)
					want[lo] = string(text)
				default:
					err = c.db.Set(key(w, lo), text, kv.NoSync)
					want[lo] = string(text)
				}
				if !assert.NoError(t, err) || !assert.NoError(t, c.wait(lastChange(c.db))) {
					return
				}
				for i := range keys {
					html, err := c.page(string(key(w, i)))
					text, ok := want[i]
					same := assert.Equal(t, text, html, "write %d of %d", n, w)
					if !same || !assert.Equal(t, ok, !errors.Is(err, kv.ErrNotFound), "%v", err) {
						return
					}
				}
			}
		})
	}
	writing.Wait()
	close(ended)
	reading.Wait()
}

func TestAPageIsDroppedThatIsMadeWhileItsTextChanges(t *testing.T) {
	t.Parallel()
	making, changed := make(chan struct{}), make(chan struct{})
	c := startCache(t, nil, func(text []byte) string {
		if string(text) == "old" {
			close(making)
			<-changed
		}
		return string(text)
	})
	require.NoError(t, c.db.Set([]byte("page"), []byte("old"), nil))
	made := make(chan string)
	go func() {
		html, _ := c.page("page")
		made <- html
	}()
	<-making
	require.NoError(t, c.db.Set([]byte("page"), []byte("new"), nil))
	require.NoError(t, c.wait(lastChange(c.db)))
	close(changed)
	require.Equal(t, "old", <-made, "the request came before the change")
	html, err := c.page("page")
	require.NoError(t, err)
	require.Equal(t, "new", html)
}

// loseSlot writes so much while the consumer cannot go on that its slot is lost, and then the page.
func loseSlot(t *testing.T, c *cache) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock() // also if the test fails: its cleanup waits for the consumer
	for n := 0; c.db.Slots()[0].Lost == ""; n++ {
		require.Less(t, n, 100)
		require.NoError(t, c.db.Set([]byte("other"), make([]byte, 10<<10), nil))
		require.NoError(t, c.db.Flush(t.Context()))
	}
	require.NoError(t, c.db.Set([]byte("page"), []byte("new"), nil))
}

func TestACacheIsEmptiedWhoseSlotIsLost(t *testing.T) {
	t.Parallel()
	c := startCache(t, &kv.Options{MaxSlotBytes: 100 << 10}, asIs)
	require.NoError(t, c.db.Set([]byte("page"), []byte("old"), nil))
	require.NoError(t, c.wait(lastChange(c.db)))
	_, err := c.page("page")
	require.NoError(t, err)
	loseSlot(t, c)
	storetest.Until(func() bool {
		slots := c.db.Slots()
		return len(slots) == 1 && slots[0].Lost == ""
	})
	require.NoError(t, c.wait(lastChange(c.db)))
	html, err := c.page("page")
	require.NoError(t, err)
	require.Equal(t, "new", html)
}
