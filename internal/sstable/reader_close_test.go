package sstable

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/cache"
)

// A mappedBytes is a file that says when its mapping is given back.
type mappedBytes struct {
	*bytes.Reader
	data     []byte
	unmapped chan struct{}
}

func (m mappedBytes) Map(int64) (data []byte, unmap func() error, err error) {
	return m.data, func() error { close(m.unmapped); return nil }, nil
}

// collectUntil runs the collector until done is closed, which it is after a few times. It waits for a minute at most.
func collectUntil(t *testing.T, done <-chan struct{}) {
	for began := time.Now(); time.Since(began) < time.Minute; runtime.Gosched() {
		runtime.GC()
		select {
		case <-done:
			return
		default:
		}
	}
	t.Error("the collector does not free it")
}

func TestAForgottenReaderGivesItsMemoryBack(t *testing.T) {
	data := plainFile(t, 3000, WriterOptions{Compression: NoCompression, IndexPartition: 500, ID: 1})
	shared := cache.New(1 << 20)
	f := mappedBytes{bytes.NewReader(data), data, make(chan struct{})}
	func() {
		r, err := NewReader(f, int64(len(data)), &ReaderOptions{Map: true, Cache: shared})
		require.NoError(t, err)
		_, err = r.get(keyOf(7))
		require.NoError(t, err)
		_, blocks := shared.Used()
		require.Positive(t, blocks)
	}()
	collectUntil(t, f.unmapped)
	used, blocks := shared.Used()
	require.Zero(t, used)
	require.Zero(t, blocks)
	shared.Release()
	require.Nil(t, shared.Retain(), "the reader has given its reference back")
}

func TestAClosedReaderGivesItsMemoryBackOnce(t *testing.T) {
	data := plainFile(t, 3000, WriterOptions{Compression: NoCompression, ID: 1})
	shared := cache.New(1 << 20)
	f := mappedBytes{bytes.NewReader(data), data, make(chan struct{})}
	gone := make(chan struct{})
	func() {
		r, err := NewReader(f, int64(len(data)), &ReaderOptions{Map: true, Cache: shared})
		require.NoError(t, err)
		runtime.AddCleanup(r, func(c chan struct{}) { close(c) }, gone)
		require.NoError(t, r.Close())
		require.NoError(t, r.Close())
	}()
	<-f.unmapped // closing it twice would panic
	collectUntil(t, gone)
	require.NotNil(t, shared.Retain())
	shared.Release()
	shared.Release()
	require.Nil(t, shared.Retain())
}

// A lookup that is the last use of its reader ends before the memory is given back.
func TestALookupKeepsItsReader(t *testing.T) {
	data := plainFile(t, 3000, WriterOptions{Compression: Snappy, IndexPartition: 500, ID: 1})
	done := make(chan struct{})
	collected := make(chan struct{})
	go func() {
		collectUntil(t, done)
		close(collected)
	}()
	key := keyOf(777)
	for range 200 {
		r, err := NewReader(bytes.NewReader(data), int64(len(data)), &ReaderOptions{CacheSize: 1 << 20})
		require.NoError(t, err)
		for range 2 {
			_, err = r.get(key)
			require.NoError(t, err)
		}
		var p Probe
		value, _, ok, err := r.Find(nil, key, filterpolicy.Hash(key), base.MaxSeqNum, &p)
		require.NoError(t, err)
		require.True(t, ok)
		require.Len(t, value, 100)
	}
	close(done)
	<-collected
}
