package kv

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// Suites that drive a store in an object store through its public face are in internal/storetest/objects.

func openObjects(t testing.TB, s objstore.Store, o *Options) *DB {
	t.Helper()
	opts := Options{MemtableSize: 64 << 10, TargetFileSize: 64 << 10, BaseLevelSize: 64 << 10}
	if o != nil {
		opts = *o
	}
	opts.Objects = &objects.Config{Store: s, LogInterval: time.Hour, Patience: time.Millisecond}
	tune := opts.harness.TuneObjects
	opts.harness.TuneObjects = func(p *objectdir.Params) {
		manyEdits(p)
		if tune != nil {
			tune(p)
		}
	}
	db, err := Open("", &opts)
	require.NoError(t, err)
	return db
}

// A nil *objects.Config is as none, also for the defaults of other options.
func TestANilConfigOfObjectsIsNone(t *testing.T) {
	for _, limit := range []int64{0, 64 << 20} {
		want, err := (&Options{MemoryLimit: limit}).withDefaults()
		require.NoError(t, err)
		got, err := (&Options{MemoryLimit: limit, Objects: (*objects.Config)(nil)}).withDefaults()
		require.NoError(t, err)
		require.True(t, got.Objects == nil)
		require.Equal(t, want.SeparateFrom, got.SeparateFrom)
		require.Equal(t, want.CacheSize, got.CacheSize)
	}
}

// A log is not flushed early where level 0 would make writers wait, and is when it no longer would.
func TestALongLogWaitsForLevel0(t *testing.T) {
	t.Parallel()
	db := openObjects(t, objstore.NewMem(), &Options{L0CompactionThreshold: 2, L0SlowdownThreshold: 2})
	defer func() { require.NoError(t, db.Close()) }()
	pause := func(paused bool) {
		db.mu.Lock()
		defer db.mu.Unlock()
		db.compactions.Paused = paused
	}
	write := func(i int) { require.NoError(t, db.Set([]byte("key"), fmt.Append(nil, i), Sync)) }
	pause(true)
	for i := range 2 {
		write(i)
		require.NoError(t, db.Flush(t.Context()))
	}
	db.settle() // all flushes are counted
	write(2)
	log, _ := db.measureMemtable()
	flushes := db.Metrics().Flushes
	db.objects.flushLongLog(log)
	db.waitForBackground()
	require.Equal(t, flushes, db.Metrics().Flushes)
	pause(false)
	require.NoError(t, db.Compact(context.Background(), nil, nil))
	db.settle()
	write(3)
	log, _ = db.measureMemtable()
	flushes = db.Metrics().Flushes
	db.objects.flushLongLog(log - 1)
	db.waitForBackground()
	require.Equal(t, flushes, db.Metrics().Flushes, "that log was flushed")
	db.objects.flushLongLog(log)
	db.waitForBackground()
	require.Equal(t, flushes+1, db.Metrics().Flushes)
}

// A holding store, once armed, answers reads when it may.
type holding struct {
	objstore.Store
	armed      atomic.Bool
	asked, may chan struct{}
}

func (h *holding) GetRange(ctx context.Context, key string, off int64, p []byte) (int, error) {
	if h.armed.Load() {
		close(h.asked)
		select {
		case <-h.may:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return h.Store.GetRange(ctx, key, off, p)
}

// A read of a file that a refresh has opened goes on when the refresh ends.
func TestReadsOutliveARefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &holding{Store: objstore.NewMem(), asked: make(chan struct{}), may: make(chan struct{})}
		db := openObjects(t, s, nil)
		require.NoError(t, db.Set([]byte("key"), nil, Sync))
		require.NoError(t, db.Flush(t.Context()))
		require.NoError(t, db.Close())
		view, err := OpenReadOnly("", &Options{Objects: &objects.Config{Store: s}})
		require.NoError(t, err)
		end := view.objects.within(t.Context(), view.follower.closing)
		f, err := view.openFile(view.tables.Path(view.installed().Runs[0].Last().Num))
		require.NoError(t, err)
		s.armed.Store(true)
		read := make(chan error)
		go func() {
			_, err := f.ReadAt(make([]byte, 1), 0)
			read <- err
		}()
		<-s.asked
		end()
		synctest.Wait()
		s.armed.Store(false)
		close(s.may)
		require.NoError(t, <-read)
		require.NoError(t, f.Close())
		require.NoError(t, view.Close())
	})
}

// No entry names a blob file, or a table that refers to one, before all of the file is there.
func TestBlobFilesAreUploadedBeforeTheyAreListed(t *testing.T) {
	for _, kind := range []string{".blob", ".sst"} {
		mem := objstore.NewMem()
		faults := objstoretest.NewFaults(mem, 1)
		db := openObjects(t, faults, &Options{SeparateFrom: 1, harness: harness.Harness{Backoff: never}})
		var mu sync.Mutex
		var order []string
		refused := true
		faults.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case c.Kind == objstore.Put && refused && strings.HasSuffix(c.Key, kind):
				return objstoretest.Fault{Outcome: objstoretest.NotPerformed, Err: errDisk}
			case c.Kind == objstore.Put:
				order = append(order, filepath.Ext(c.Key))
			case c.Kind == objstore.PutIfAbsent:
				order = append(order, "list")
			}
			return f
		})
		require.NoError(t, db.Set([]byte("k"), []byte("value"), Async))
		require.ErrorIs(t, db.Flush(t.Context()), errDisk)
		mu.Lock()
		require.NotContains(t, order, "list", "nothing is to be listed")
		mu.Unlock()
		crashed := openObjects(t, storetest.CopyObjects(t, mem), nil) // another machine sees what is there
		requireContents(t, storetest.Model{}, crashed)
		requireBlobs(t, crashed)
		require.NoError(t, crashed.Close())

		mu.Lock()
		refused, order = false, nil
		mu.Unlock()
		require.NoError(t, db.resume(true))
		require.NoError(t, db.Flush(t.Context()))
		mu.Lock()
		require.GreaterOrEqual(t, len(order), 3)
		require.ElementsMatch(t, []string{".blob", ".sst"}, order[:2])
		require.Equal(t, "list", order[2])
		mu.Unlock()
		requireContents(t, storetest.Model{"k": "value"}, db)
		require.NoError(t, db.Close())
		db = openObjects(t, mem, nil)
		requireContents(t, storetest.Model{"k": "value"}, db)
		requireBlobs(t, db)
		require.NoError(t, db.Close())
	}
}
