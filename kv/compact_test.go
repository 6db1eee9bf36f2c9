package kv

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/vfs"
)

// What a compaction kept for a snapshot goes with the next, though that was asked for
// while the first was at work.
func TestACompactionMergesWhatCameWhileItWaited(t *testing.T) {
	created, goOn := make(chan struct{}), make(chan struct{})
	gate := &gateFS{FS: vfs.NewMem(), table: func() {}}
	db := openDir(t, "db", &Options{fs: gate, L0CompactionThreshold: 50})
	set(t, db, "k", "1")
	s := db.NewSnapshot()
	require.NoError(t, db.Delete([]byte("k"), nil))
	require.NoError(t, db.Flush())
	gate.table = func() { created <- struct{}{}; <-goOn }
	done := make(chan error, 2)
	compact := func() { done <- db.Compact(nil, nil) }
	go compact()
	<-created
	gate.table = func() {}
	require.NoError(t, s.Close())
	go compact()
	until(func() bool {
		db.mu.Lock()
		defer db.mu.Unlock()
		return db.compactions.manual == 2
	})
	close(goOn)
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	require.Zero(t, db.Metrics().Levels[lastLevel].Entries)
}
