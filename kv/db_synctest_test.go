package kv

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// Applications test what depends on time in bubbles of testing/synctest, with stores in
// them. A channel that was made in a bubble must not be used outside: a store shares none
// with other stores.
func TestAStoreInABubbleSharesNoChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := Open("db", &Options{harness: harness.Harness{FS: vfstest.YieldingFS{FS: vfs.NewMem()}}})
		require.NoError(t, err)
		var writers sync.WaitGroup
		for n := range 24 { // who arrives while another syncs waits for its turn
			o := []*WriteOptions{Sync, NoSync, Async}[n%3]
			writers.Go(func() { require.NoError(t, db.Set([]byte("k"), []byte("v"), o)) })
		}
		writers.Wait()
		require.NoError(t, db.Flush(t.Context()))
		requireContents(t, storetest.Model{"k": "v"}, db)
		require.NoError(t, db.Close())
	})
	s := newStalledStore(t)
	first := s.commit(context.Background(), "first")
	s.queued(0)
	second := s.commit(context.Background(), "second") // it waits for its turn
	s.queued(1)
	close(s.gate)
	require.NoError(t, <-first)
	require.NoError(t, <-second)
	s.finish("first", "second")
}
