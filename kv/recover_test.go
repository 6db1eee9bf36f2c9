package kv

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/stretchr/testify/require"
)

func TestAMissingLogIsAHoleAndAnError(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, &Options{MemtableSize: 64 << 10, MaxMemtables: 8})
	require.NoError(t, err)
	var first string
	db.mu.Lock()
	first = db.path(manifest.FileWAL, db.logNum)
	db.flushing = true // no flush takes the logs away
	db.mu.Unlock()
	for i := range 3000 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "%06d", i), make([]byte, 50), NoSync))
	}
	db.mu.Lock()
	require.NotEmpty(t, db.imms)
	db.flushing = false
	db.mu.Unlock()
	require.NoError(t, db.Close())
	require.NoError(t, os.Remove(first))
	_, err = Open(dir, nil)
	require.ErrorIs(t, err, ErrCorruption)
	require.ErrorContains(t, err, first)
}

func TestRecordsThatCountBackwardsAreRefused(t *testing.T) {
	p := replayer{d: &DB{opts: Options{MemtableSize: 64 << 10}}, lastSeq: 5}
	empty := make([]byte, batchrepr.HeaderSize)
	require.ErrorIs(t, p.record(empty, bytes.Clone), batchrepr.ErrMalformed)
	b := &Batch{}
	require.NoError(t, b.Set([]byte("k"), nil))
	require.ErrorContains(t, p.record(b.repr.Seal(5), bytes.Clone), "comes again")
	require.NoError(t, p.record(b.repr.Seal(6), bytes.Clone))
	require.Equal(t, base.SeqNum(6), p.lastSeq)
}

// The memtables of a log are few, and no larger than it needs: each is four times as large as the last, until together
// they are as large as MemtableSize. Later ones have that size, and the next log starts small again.
func TestMemtablesOfALogGrow(t *testing.T) {
	p := replayer{d: &DB{opts: Options{MemtableSize: 32 << 20}}, log: 1}
	value := make([]byte, 100<<10)
	write := func(n int) {
		for range n {
			b := &Batch{}
			require.NoError(t, b.Set([]byte("k"), value))
			require.NoError(t, p.record(b.repr.Seal(p.lastSeq+1), bytes.Clone))
		}
	}
	write(600)
	p.log = 2
	write(1)
	var got []int
	for _, m := range p.mems {
		got = append(got, int(m.Capacity()>>20))
	}
	require.Equal(t, []int{1, 4, 16, 9, 30, 1}, got)
}

// BenchmarkOpenReadOnly opens a view of a store whose log has one write.
func BenchmarkOpenReadOnly(b *testing.B) {
	dir := b.TempDir()
	db := openDir(b, dir, &Options{fs: vfs.OS})
	set(b, db, "k", "v")
	for b.Loop() {
		view, err := OpenReadOnly(dir, nil)
		require.NoError(b, err)
		require.NoError(b, view.Close())
	}
	require.NoError(b, db.Close())
}
