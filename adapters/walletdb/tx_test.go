package siftwalletdb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/btcsuite/btcwallet/walletdb"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
)

var errStop = errors.New("stop")

func TestIsolation(t *testing.T) {
	d := inMemory(t)
	filled(t, d)
	reader, err := d.BeginReadTx()
	require.NoError(t, err)
	writer, err := d.BeginReadWriteTx()
	require.NoError(t, err)
	require.NoError(t, writer.ReadWriteBucket([]byte("b")).Put([]byte("00"), []byte("new")))
	get := func(tx walletdb.ReadTx) string { return string(tx.ReadBucket([]byte("b")).Get([]byte("00"))) }
	require.Equal(t, "new", get(writer))
	require.Equal(t, "v0", get(reader))
	view(t, d, func(tx walletdb.ReadTx) { require.Equal(t, "v0", get(tx)) })
	require.NoError(t, writer.Commit())
	require.Equal(t, "v0", get(reader))
	view(t, d, func(tx walletdb.ReadTx) { require.Equal(t, "new", get(tx)) })
	b, c := reader.ReadBucket([]byte("b")), reader.ReadBucket([]byte("b")).ReadCursor()
	require.NoError(t, reader.Rollback())

	require.Nil(t, b.Get([]byte("00")), "the transaction has ended")
	key, _ := c.First()
	require.Nil(t, key)
	require.Nil(t, reader.ReadBucket([]byte("b")))
	require.Equal(t, walletdb.ErrTxClosed, reader.ForEachBucket(func([]byte) error { return nil }))
	_, err = writer.CreateTopLevelBucket([]byte("n"))
	require.Equal(t, walletdb.ErrTxClosed, err)
}

// TestUpdateRollsBack when its function fails or panics, and lets the next writer in.
func TestUpdateRollsBack(t *testing.T) {
	d := inMemory(t)
	resets, commits := 0, 0
	put := func(tx walletdb.ReadWriteTx) {
		tx.OnCommit(func() { commits++ })
		require.NoError(t, bucketOf(t, tx, "b").Put([]byte("k"), nil))
	}
	require.Equal(t, errStop, d.Update(func(tx walletdb.ReadWriteTx) error {
		put(tx)
		return errStop
	}, func() { resets++ }))
	require.PanicsWithValue(t, "stop", func() {
		_ = d.Update(func(tx walletdb.ReadWriteTx) error {
			put(tx)
			panic("stop")
		}, func() { resets++ })
	})
	require.PanicsWithValue(t, "stop", func() {
		_ = d.View(func(walletdb.ReadTx) error { panic("stop") }, func() { resets++ })
	})
	require.Equal(t, errStop, d.View(func(walletdb.ReadTx) error { return errStop }, func() { resets++ }))
	require.Equal(t, 4, resets)
	require.Zero(t, commits)
	require.Empty(t, dump(t, d))
	require.Zero(t, d.store.Metrics().Transactions)
	update(t, d, put)
	require.Equal(t, 1, commits)
}

// TestOnCommit runs functions in their order, when the transaction has ended: they may begin others.
func TestOnCommit(t *testing.T) {
	d := inMemory(t)
	var order []int
	update(t, d, func(tx walletdb.ReadWriteTx) {
		bucketOf(t, tx, "b")
		for i := range 3 {
			tx.OnCommit(func() {
				order = append(order, i)
				update(t, d, func(tx walletdb.ReadWriteTx) { require.NotNil(t, tx.ReadBucket([]byte("b"))) })
			})
		}
		require.Empty(t, order)
	})
	require.Equal(t, []int{0, 1, 2}, order)
}

// TestOneWriter has writers come one after the other, each seeing what all before have done.
func TestOneWriter(t *testing.T) {
	d := inMemory(t)
	for name, run := range map[string]func(func(tx walletdb.ReadWriteTx) error) error{
		"update": func(f func(tx walletdb.ReadWriteTx) error) error { return d.Update(f, func() {}) },
		"batch":  d.Batch,
	} {
		const writers, rounds = 8, 30
		var all sync.WaitGroup
		for range writers {
			all.Go(func() {
				for i := range rounds {
					err := run(func(tx walletdb.ReadWriteTx) error {
						b, err := tx.CreateTopLevelBucket([]byte(name))
						if err != nil {
							return err
						}
						if i%10 == 5 {
							return errStop
						}
						var n uint64
						if stored := b.Get([]byte("n")); stored != nil {
							n = binary.BigEndian.Uint64(stored)
						}
						return b.Put([]byte("n"), binary.BigEndian.AppendUint64(nil, n+1))
					})
					if i%10 == 5 {
						require.Equal(t, errStop, err)
					} else {
						require.NoError(t, err)
					}
				}
			})
		}
		all.Wait()
		view(t, d, func(tx walletdb.ReadTx) {
			n := binary.BigEndian.Uint64(tx.ReadBucket([]byte(name)).Get([]byte("n")))
			require.EqualValues(t, writers*(rounds-rounds/10), n)
		})
	}
}

// TestBatchesAreShared commits once what came while another wrote; one that panics does so where it was called.
func TestBatchesAreShared(t *testing.T) {
	d := inMemory(t)
	writer, err := d.BeginReadWriteTx()
	require.NoError(t, err)
	const callers = 10
	var all sync.WaitGroup
	var panics, commits atomic.Int64
	before := d.store.Metrics().TxCommits
	for i := range callers {
		all.Go(func() {
			defer func() {
				if recover() == "stop" {
					panics.Add(1)
				}
			}()
			require.NoError(t, d.Batch(func(tx walletdb.ReadWriteTx) error {
				b, err := tx.CreateTopLevelBucket([]byte("b"))
				if err != nil {
					return err
				}
				tx.OnCommit(func() { commits.Add(1) })
				if i == 3 {
					panic("stop")
				}
				return b.Put([]byte{byte(i)}, nil)
			}))
		})
	}
	for waiting := 0; waiting < callers; { // for the writer, or for the first of them
		d.batch.mu.Lock()
		waiting = len(d.batch.waiting)
		d.batch.mu.Unlock()
	}
	require.NoError(t, writer.Rollback())
	all.Wait()
	require.EqualValues(t, 1, panics.Load())
	require.EqualValues(t, callers-1, commits.Load())
	require.EqualValues(t, 1, d.store.Metrics().TxCommits-before)
	require.Len(t, dump(t, d), callers)
}

// TestABatchWhoseGoroutineEnds does not keep the others waiting, nor tell them that all is well.
func TestABatchWhoseGoroutineEnds(t *testing.T) {
	d := inMemory(t)
	writer, err := d.BeginReadWriteTx()
	require.NoError(t, err)
	gone, told := make(chan struct{}), make(chan error, 1)
	go func() { // the first runs the functions of both
		defer close(gone)
		_ = d.Batch(func(walletdb.ReadWriteTx) error {
			runtime.Goexit()
			return nil
		})
	}()
	waitFor := func(n int) {
		for waiting := 0; waiting < n; {
			d.batch.mu.Lock()
			waiting = len(d.batch.waiting)
			d.batch.mu.Unlock()
		}
	}
	waitFor(1)
	go func() {
		told <- d.Batch(func(tx walletdb.ReadWriteTx) error {
			_, err := tx.CreateTopLevelBucket([]byte("b"))
			return err
		})
	}()
	waitFor(2)
	require.NoError(t, writer.Rollback())
	<-gone
	require.NoError(t, <-told)
	require.Equal(t, []string{"b/"}, dump(t, d))
}

// TestCloseWaits for transactions that have begun, and refuses those that have not.
func TestCloseWaits(t *testing.T) {
	d := inMemory(t)
	reader, err := d.BeginReadTx()
	require.NoError(t, err)
	writer, err := d.BeginReadWriteTx()
	require.NoError(t, err)
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	for err == nil {
		var tx walletdb.ReadTx
		if tx, err = d.BeginReadTx(); err == nil {
			require.NoError(t, tx.Rollback())
		}
	}
	require.Equal(t, walletdb.ErrDbNotOpen, err)
	_, err = writer.CreateTopLevelBucket([]byte("b"))
	require.NoError(t, err)
	require.NoError(t, writer.Commit())
	require.Nil(t, reader.ReadBucket([]byte("b")))
	require.Empty(t, closed)
	require.NoError(t, reader.Rollback())
	require.NoError(t, <-closed)
}

// TestFailedReads of a damaged file find nothing, and end the transaction with an error.
func TestFailedReads(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wallet")
	d, err := Create(dir, nil)
	require.NoError(t, err)
	filled(t, d.(*db))
	require.NoError(t, d.(*db).store.Flush(t.Context()))
	require.NoError(t, d.Close())
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	require.Len(t, tables, 1)
	data, err := os.ReadFile(tables[0])
	require.NoError(t, err)
	for i := range 200 { // of the first data block
		data[i] ^= 0xA5
	}
	require.NoError(t, os.WriteFile(tables[0], data, 0o600))
	damaged, err := kv.Open(dir, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, damaged.Close()) })
	broken := newDB(damaged)

	for name, read := range map[string]func(tx walletdb.ReadTx){
		"bucket": func(tx walletdb.ReadTx) { require.Nil(t, tx.ReadBucket([]byte("b"))) },
		"cursor": func(open walletdb.ReadTx) {
			b := &bucket{tx: open.(*tx), prefix: childPrefix(nil, 1)}
			key, _ := b.ReadCursor().First()
			require.Nil(t, key)
			require.Nil(t, b.Get([]byte("00")))
		},
	} {
		require.ErrorIs(t, walletdb.View(broken, func(tx walletdb.ReadTx) error {
			read(tx)
			return nil
		}), kv.ErrCorruption, name)
		require.ErrorIs(t, walletdb.Update(broken, func(tx walletdb.ReadWriteTx) error {
			read(tx)
			return nil
		}), kv.ErrCorruption, name)
	}
	require.ErrorIs(t, walletdb.View(broken, func(tx walletdb.ReadTx) error {
		return tx.ForEachBucket(func([]byte) error { return nil })
	}), kv.ErrCorruption)
	require.ErrorIs(t, walletdb.Update(broken, func(tx walletdb.ReadWriteTx) error {
		_, err := tx.CreateTopLevelBucket([]byte("b"))
		require.Error(t, err)
		return fmt.Errorf("f's own: %w", err)
	}), kv.ErrCorruption)
}

// TestForeignBytes under a key are an error, and no value.
func TestForeignBytes(t *testing.T) {
	d := inMemory(t)
	filled(t, d)
	for _, stored := range [][]byte{{}, {7}, {isBucket}, {isBucket, 1, 1}, {isBucket, 0xFF}} {
		require.NoError(t, d.store.Set(subKey(nil, kindEntry, []byte("x")), stored, nil))
		require.ErrorIs(t, walletdb.View(d, func(tx walletdb.ReadTx) error {
			require.Nil(t, tx.ReadBucket([]byte("x")))
			return nil
		}), errEntry)
		require.ErrorIs(t, walletdb.View(d, func(tx walletdb.ReadTx) error {
			return tx.ForEachBucket(func([]byte) error { return nil })
		}), errEntry)
	}
	require.NoError(t, d.store.Delete(subKey(nil, kindEntry, []byte("x")), nil))
	for _, key := range [][]byte{{kindLast}, {kindChild, 1, kindSequence}} {
		require.NoError(t, d.store.Set(key, []byte{0xFF}, nil))
	}
	for _, f := range []func(tx walletdb.ReadWriteTx) error{
		func(tx walletdb.ReadWriteTx) error {
			_, err := tx.CreateTopLevelBucket([]byte("new"))
			return err
		},
		func(tx walletdb.ReadWriteTx) error {
			_, err := tx.ReadWriteBucket([]byte("b")).NextSequence()
			return err
		},
	} {
		require.ErrorIs(t, walletdb.Update(d, f), errEntry)
	}
}
