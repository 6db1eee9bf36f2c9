package kv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Readers of values, gets, scans and MultiGets go on beside writes, flushes, collections and files that are closed
// for others, and until the store closes: each has one value as a whole, or ErrClosed.
func TestReadersBesideRemovalAndClose(t *testing.T) {
	t.Parallel()
	for _, atCommit := range []bool{false, true} {
		db := openDir(t, t.TempDir(), &Options{harness: harness.Harness{FS: vfs.OS, BlobSize: 200 << 10,
			MinStreamed: 100}, SeparateFrom: 100, SeparateAtCommit: atCommit,
			MaxOpenFiles: 4, MemtableSize: 256 << 10, CacheSize: 300 << 10})
		const keys = 20
		key := func(i int) []byte { return fmt.Appendf(nil, "%03d", i%keys) }
		valueOf := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 100+i*997%40_000) }
		whole := func(v []byte) bool {
			return len(v) >= 100 && bytes.Count(v, v[:1]) == len(v)
		}
		for i := range keys {
			require.NoError(t, db.Set(key(i), valueOf(i), NoSync))
		}
		var wg sync.WaitGroup
		started := make(chan struct{}, 100)
		each := func(f func(i int) (bool, error)) {
			wg.Go(func() {
				for i := 0; ; i++ {
					ok, err := f(i)
					if i == 20 {
						started <- struct{}{}
					}
					if errors.Is(err, ErrClosed) {
						return
					}
					if err != nil || !ok {
						t.Errorf("read %d: %v %v", i, ok, err)
						started <- struct{}{}
						return
					}
				}
			})
		}
		for range 2 {
			each(func(i int) (bool, error) {
				r, err := db.GetReader(key(i))
				if err != nil {
					return false, err
				}
				v, err := io.ReadAll(r)
				return whole(v) && int64(len(v)) == r.Size(), errors.Join(err, r.Close())
			})
		}
		each(func(i int) (bool, error) {
			v, err := db.Get(key(i))
			return whole(v), err
		})
		each(func(i int) (bool, error) {
			var ks [][]byte
			for n := range 8 {
				ks = append(ks, key(i*n))
			}
			vs, err := db.MultiGet(ks)
			for _, v := range vs {
				if !whole(v) {
					return false, err
				}
			}
			return true, err
		})
		each(func(i int) (bool, error) {
			it, err := db.NewIter(nil)
			if err != nil {
				return false, err
			}
			n, right := 0, true
			for ok := it.First(); ok; ok = it.Next() {
				right = right && whole(it.Value())
				n++
			}
			err = it.Error()
			_ = it.Close() // it is the same error
			return right && n == keys, err
		})
		for range 4 {
			<-started
		}
		for i := range scale.Count(60, 400) {
			v := valueOf(i)
			if i%3 == 0 {
				require.NoError(t, db.SetReader(t.Context(), key(i), int64(len(v)), bytes.NewReader(v), NoSync))
			} else {
				require.NoError(t, db.Set(key(i), v, NoSync))
			}
			if i%100 == 50 {
				require.NoError(t, db.Flush(t.Context()))
			}
			if i%100 == 99 {
				require.NoError(t, db.Compact(t.Context(), nil, nil))
			}
		}
		if err := db.Close(); err != nil { // others may still have what they read from
			require.ErrorContains(t, err, "open")
		}
		wg.Wait()
	}
}
