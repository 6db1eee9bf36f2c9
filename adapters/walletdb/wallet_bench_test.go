package siftwalletdb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/btcsuite/btcwallet/walletdb"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/turns"
)

const benchRows = 200_000

// BenchmarkWallet puts 200,000 rows of 40 bytes under random keys of 32, as hashes are, in two buckets in a bucket, and
// reads them, on this driver and on bdb, in turns. It prints the processor time of a row, in nanoseconds:
//
//	load    1,000 rows a transaction
//	put     a row a transaction, 500 of them
//	batch   a row a call of Batch, by 16 goroutines
//	get     rows in random order, in one transaction
//	scan    all rows by a cursor
//	clock   put by the clock, with its syncs
//	size    of the files in bytes, closed
//
// `-benchtime 5x` makes five rounds.
func BenchmarkWallet(b *testing.B) {
	var t turns.Table
	for range b.N {
		benchmarkWallet(b, &t, Name, nil)
		benchmarkWallet(b, &t, "bdb", []any{true, time.Minute})
	}
	t.Print(b, Name, "bdb")
}

func benchKey(i uint64) []byte {
	r := rand.NewPCG(i, 1)
	key := make([]byte, 0, 32)
	for range 4 {
		key = binary.BigEndian.AppendUint64(key, r.Uint64())
	}
	return key
}

// benchValue returns what compresses by a fifth.
func benchValue(i uint64) []byte { return append(benchKey(i+1<<40), make([]byte, 8)...) }

func benchmarkWallet(b *testing.B, t *turns.Table, name string, args []any) {
	path := filepath.Join(b.TempDir(), "wallet")
	d, err := walletdb.Create(name, append([]any{path}, args...)...)
	require.NoError(b, err)
	rows := func(tx walletdb.ReadWriteTx, i uint64) walletdb.ReadWriteBucket {
		r, err := bucketOf(b, tx, "wtxmgr").CreateBucketIfNotExists(fmt.Appendf(nil, "rows%d", i%2))
		require.NoError(b, err)
		return r
	}
	measure := func(figure string, n int, f func()) { t.Measure(name, figure, n, f) }
	measure("load", benchRows, func() {
		for i := uint64(0); i < benchRows; i += 1000 {
			update(b, d, func(tx walletdb.ReadWriteTx) {
				for j := i; j < i+1000; j++ {
					require.NoError(b, rows(tx, j).Put(benchKey(j), benchValue(j)))
				}
			})
		}
	})
	var onClock time.Duration
	measure("put", 500, func() {
		start := time.Now()
		for i := range uint64(500) {
			update(b, d, func(tx walletdb.ReadWriteTx) {
				require.NoError(b, rows(tx, i).Put(benchKey(i), benchValue(i)))
			})
		}
		onClock = time.Since(start)
	})
	t.Add(name, "clock", float64(onClock)/500)
	benchmarkBatch(b, d, measure, func(tx walletdb.ReadWriteTx, i uint64) error {
		return rows(tx, i).Put(benchKey(i), benchValue(i))
	})
	require.NoError(b, d.Close())
	d, err = walletdb.Open(name, append([]any{path}, args...)...)
	require.NoError(b, err)
	view(b, d, func(tx walletdb.ReadTx) {
		buckets := [2]walletdb.ReadBucket{tx.ReadBucket([]byte("wtxmgr")).NestedReadBucket([]byte("rows0")),
			tx.ReadBucket([]byte("wtxmgr")).NestedReadBucket([]byte("rows1"))}
		measure("get", benchRows, func() {
			for range benchRows {
				i := rand.Uint64N(benchRows)
				require.Len(b, buckets[i%2].Get(benchKey(i)), 40)
			}
		})
		n := 0
		measure("scan", benchRows, func() {
			for _, bucket := range buckets {
				c := bucket.ReadCursor()
				for k, _ := c.First(); k != nil; k, _ = c.Next() {
					n++
				}
			}
		})
		require.Equal(b, benchRows, n)
	})
	require.NoError(b, d.Close())
	t.Add(name, "size", float64(sizeOf(b, path)))
}

func benchmarkBatch(b *testing.B, d walletdb.DB, measure func(string, int, func()),
	put func(tx walletdb.ReadWriteTx, i uint64) error) {
	const goroutines, each = 16, 100
	measure("batch", goroutines*each, func() {
		done := make(chan error)
		for g := range uint64(goroutines) {
			go func() {
				var err error
				for i := range uint64(each) {
					err = errors.Join(err, walletdb.Batch(d, func(tx walletdb.ReadWriteTx) error {
						return put(tx, each*g+i)
					}))
				}
				done <- err
			}()
		}
		for range goroutines {
			require.NoError(b, <-done)
		}
	})
}

// sizeOf returns the bytes of a file, or of those in a directory.
func sizeOf(b *testing.B, path string) (size int64) {
	require.NoError(b, fs.WalkDir(os.DirFS(filepath.Dir(path)), filepath.Base(path),
		func(_ string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			info, err := e.Info()
			size += info.Size()
			return err
		}))
	return size
}
