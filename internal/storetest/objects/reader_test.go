package objects

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// A view stays as it is while the writer goes on, and a refresh brings it up to date, whatever the
// writer has flushed, compacted and given up meanwhile.
func TestAReaderInAnObjectStore(t *testing.T) {
	t.Parallel()
	s := objstore.NewMem()
	_, err := kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10, Objects: &objects.Config{Store: s}})
	require.ErrorIs(t, err, kv.ErrNotExist)
	db := openObjects(t, s, nil)
	reader := openObjectsReader(t, s)
	want := storetest.Model{}
	rng := rand.New(rand.NewPCG(1, 16))
	for round := range 20 {
		storetest.RequireContents(t, want, reader)
		before := maps.Clone(want)
		for range 200 {
			k, v := fmt.Sprintf("%03d", rng.IntN(1000)), fmt.Sprintf("%d-%0*d", round, rng.IntN(300), 7)
			require.NoError(t, db.Set([]byte(k), []byte(v), kv.Async))
			want[k] = v
		}
		storetest.RequireContents(t, before, reader)
		switch round % 4 {
		case 0:
			require.NoError(t, db.Flush(t.Context()))
		case 1:
			require.NoError(t, db.Compact(t.Context(), nil, nil))
		}
		require.NoError(t, db.Set([]byte("round"), fmt.Append(nil, round), kv.Sync))
		want["round"] = strconv.Itoa(round)
		require.NoError(t, reader.Refresh(context.Background()))
	}
	require.NoError(t, db.Close())
	require.NoError(t, reader.Refresh(context.Background()))
	storetest.RequireContents(t, want, reader)
	require.ErrorIs(t, reader.Set([]byte("a"), nil, nil), kv.ErrReadOnly)
	require.NoError(t, reader.Close())

	closed, err := kv.Open("", &kv.Options{Objects: &objects.Config{Store: s}, ReadOnly: true})
	require.NoError(t, err)
	storetest.RequireContents(t, want, closed)
	require.NoError(t, closed.Close())
}

func TestWaitForChange(t *testing.T) {
	s := objstore.NewMem()
	db := openObjects(t, s, nil)
	reader, err := kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10, Objects: &objects.Config{Store: s},
		PollInterval: time.Microsecond})
	require.NoError(t, err)
	ended, end := context.WithCancel(context.Background())
	end()
	require.ErrorIs(t, reader.WaitForChange(ended), context.Canceled)
	require.NoError(t, db.WaitForChange(context.Background()), "a writer sees the present")
	done := make(chan error)
	for i := range 20 {
		go func() { done <- reader.WaitForChange(context.Background()) }()
		require.NoError(t, db.Set([]byte("a"), fmt.Append(nil, i), kv.Sync))
		require.NoError(t, <-done)
		got, err := reader.Get([]byte("a"))
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(i), string(got))
	}
	require.NoError(t, reader.Close())
	require.ErrorIs(t, reader.WaitForChange(context.Background()), kv.ErrClosed)
	require.NoError(t, db.Close())
}
