package kv

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
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

// An Open that fails leaves no file open, at any call. The logs overwrite blob values, so recovery reads in tables how
// many bytes they hide.
func TestAFailedOpenClosesWhatItOpened(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	o := Options{fs: mem, SeparateFrom: 50, backoff: never}
	db, err := Open("db", &o)
	require.NoError(t, err)
	for round := range 2 {
		for i := range 20 {
			require.NoError(t, db.Set(fmt.Appendf(nil, "%02d", i), make([]byte, 100+round), Sync))
		}
		if round == 0 {
			require.NoError(t, db.Compact(t.Context(), nil, nil))
		}
	}
	require.NoError(t, db.Close()) // which flushes nothing
	again := copyDir(t, mem, "db")
	broken, failures := errors.New("this call fails"), 0
	for n := 1; ; n++ {
		left, err := mem.List("db")
		require.NoError(t, err)
		for _, name := range left {
			require.NoError(t, mem.Remove(filepath.Join("db", name)))
		}
		again()
		open := &atomic.Int64{}
		faults := &faultFS{fs: openFS{mem, open}}
		faults.set(func(c ioCall) (int, error) {
			if c.n == n {
				return 0, broken
			}
			return 0, nil
		})
		o.fs = faults
		db, err := Open("db", &o)
		if err != nil {
			failures++
			require.Zero(t, open.Load(), "after call %d failed", n)
			continue
		}
		faults.set(nil)
		_ = db.Close()
		require.Zero(t, open.Load(), "call %d", n)
		if faults.calls < n { // Close makes some calls too, so that each of Open came first
			break
		}
	}
	require.Greater(t, failures, 20)
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
