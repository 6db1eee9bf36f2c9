package advice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storeview"
	"github.com/siftkv/siftkv/kv"
)

// Advice about stores with hardly anything in them has no numbers that are none.
func TestAdviceAboutNextToNothing(t *testing.T) {
	scale.OneGoroutine(t, "a replay in one goroutine")
	t.Parallel()
	none, err := filterpolicy.Parse("none")
	require.NoError(t, err)
	for name, o := range map[string]*kv.Options{"empty": {}, "memtable": {}, "scans": {}, "no cache": {CacheSize: -1},
		"no filters": {Filter: none}, "budget": {FilterBudget: 1 << 20}} {
		t.Run(name, func(t *testing.T) {
			o.LookupSample = 256 << 10
			db, err := kv.Open(t.TempDir(), o)
			require.NoError(t, err)
			for i := range 3000 {
				if name != "empty" {
					require.NoError(t, db.Set(fmt.Appendf(nil, "%05d", 2*i), []byte("value"), kv.NoSync))
				}
			}
			if name != "memtable" {
				require.NoError(t, db.Flush(t.Context()))
			}
			for i := range 2000 {
				if name != "scans" {
					_, err := db.Has(fmt.Appendf(nil, "%05d", i))
					require.NoError(t, err)
				}
			}
			if name == "scans" {
				for i := range 3000 {
					it, err := db.NewIter(nil)
					require.NoError(t, err)
					it.SeekGE(fmt.Appendf(nil, "%05d", i))
					it.SeekLT(fmt.Appendf(nil, "%05d", i))
					it.First()
					require.NoError(t, it.Close())
				}
			}
			a, err := For(t.Context(), db, nil)
			if name == "scans" { // of which a sample has fewer than of lookups
				require.ErrorIs(t, err, ErrSmallSample)
				require.NoError(t, db.Close())
				return
			}
			require.NoError(t, err)
			_, err = json.Marshal(a)
			require.NoError(t, err)
			_, err = kv.ParseOptions(a.Options)
			require.NoError(t, err)
			require.LessOrEqual(t, a.Recommended.Memory, a.Now.Memory+a.Now.Memory/1000)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err = For(ctx, db, nil)
			require.ErrorIs(t, err, context.Canceled)
			require.NoError(t, db.Close())
		})
	}
}

// Advice, rewriting, readers and writers do not disturb each other, and neither does closing meanwhile.
func TestAdviceAndRewritingBesideReadersAndWriters(t *testing.T) {
	t.Parallel()
	o := &kv.Options{LookupSample: 64 << 10, MemtableSize: 64 << 10, TargetFileSize: 16 << 10, FilterBudget: 4000}
	db, err := kv.Open(t.TempDir(), o)
	require.NoError(t, err)
	for n := range 18_000 {
		fine(t, db.Set(fmt.Appendf(nil, "key-%05d", n*7%9000), make([]byte, 8), kv.NoSync))
	}
	settle(t, db)
	var group sync.WaitGroup
	stop := make(chan struct{})
	for w := range 2 {
		group.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Appendf(make([]byte, 0, 64<<10), "key-%05d", (i*31+w)%9000)
				if i%8 == 0 {
					_ = db.Set(key, key, kv.NoSync)
				}
				_, _ = db.Get(key)
				_, _ = db.MultiGet([][]byte{key, key[:4]})
				key[0] = 'x' // of the caller again
			}
		})
	}
	for range 3 {
		_, err = For(t.Context(), db, nil)
		if !errors.Is(err, ErrSmallSample) {
			require.NoError(t, err)
		}
		_, err = db.CompactFilters(t.Context())
		require.NoError(t, err)
	}
	store, err := storeview.Of(db)
	require.NoError(t, err)
	sample := store.Sampler.Take()
	store.Release()
	for _, key := range sample.Keys {
		require.Equal(t, "key-"[:min(4, len(key))], string(key[:min(4, len(key))]))
	}
	done := make(chan error)
	go func() {
		var err error
		for err == nil {
			_, err = db.CompactFilters(t.Context())
		}
		done <- err
	}()
	close(stop)
	group.Wait()
	require.NoError(t, db.Close())
	require.ErrorIs(t, <-done, kv.ErrClosed)
}

// The price of a read is measured, and an error of the file is the answer's.
func TestAdviceMeasuresReads(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "reads of one; TestAdviceAndRewritingBesideReadersAndWriters has several")
	db, dir := adviceStore(t, &kv.Options{LookupSample: 1 << 20})
	ask(t, db)
	a, err := For(t.Context(), db, nil)
	require.NoError(t, err)
	require.Regexp(t, `; so is a read of a block, [0-9.]+[mµn]?s: `, a.Prices)
	const read = 10 * time.Second
	slow, err := For(t.Context(), db, &Options{DeviceRead: read, Filters: []string{"none"}})
	require.NoError(t, err)
	require.Contains(t, slow.Prices, "takes 10s, as given")
	require.InEpsilon(t, slow.Now.Lookups.DeviceReads*float64(read), slow.Now.Lookups.Nanos, 0.01)
	for _, o := range []Options{{Memory: -1}, {DeviceRead: -1}, {Filters: []string{"bluum:3"}}} {
		_, err := For(t.Context(), db, &o)
		require.ErrorIs(t, err, kv.ErrInvalidOptions)
	}
	w := locatorOf(t, db)
	defer w.store.Release()
	paths, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	for _, path := range paths {
		require.NoError(t, os.Truncate(path, 0))
	}
	_, err = w.timeReads()
	require.ErrorIs(t, err, kv.ErrCorruption)
}
