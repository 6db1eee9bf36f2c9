package objects

import (
	"bytes"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
)

// A chain goes on with a request that begins when another has ended, not with one beside it.
func TestRoundTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := &wire{Store: objstore.NewMem()}
		require.NoError(t, w.PutIfAbsent(ctx, "a", []byte("0123456789")))
		require.Zero(t, w.roundTrips(), "nothing is noted without a delay")
		get := func() {
			_, err := w.GetRange(ctx, "a", 0, make([]byte, 4))
			require.NoError(t, err)
		}
		started := time.Now()
		w.lengthen(time.Second)
		var all sync.WaitGroup
		for range 32 {
			all.Go(get)
		}
		all.Wait()
		require.Equal(t, 1, w.roundTrips())
		get()
		require.Equal(t, 2, w.roundTrips())
		all.Go(func() {
			time.Sleep(time.Second / 2)
			get()
		})
		get()
		all.Wait()
		require.Equal(t, 3, w.roundTrips(), "one that begins meanwhile waits for none")
		require.Equal(t, 3500*time.Millisecond, time.Since(started))

		w.lengthen(time.Second)
		require.Zero(t, w.roundTrips())
		require.NoError(t, w.Put(ctx, "b", bytes.NewReader([]byte("b")), 1))
		require.NoError(t, w.PutIfAbsent(ctx, "c", nil))
		listed := 0
		for _, err := range w.List(ctx, "", "") {
			require.NoError(t, err)
			listed++
			get()
		}
		require.Equal(t, 3, listed)
		require.NoError(t, w.Delete(ctx, "c"))
		require.Equal(t, 7, w.roundTrips(), "a put each, a list, three reads of what it lists, a delete")
		_, err := w.GetRange(ctx, "a", 0, nil)
		require.NoError(t, err)
		require.Equal(t, 7, w.roundTrips(), "what asks for nothing is no request")
	})
}
