package siftwalletdb

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/btcsuite/btcwallet/walletdb"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
)

// rows returns all keys and values of the store below, in hex.
func rows(t testing.TB, d *db) (all []string) {
	it, err := d.store.NewIter(nil)
	require.NoError(t, err)
	for ok := it.First(); ok; ok = it.Next() {
		all = append(all, hex.EncodeToString(it.Key())+"="+hex.EncodeToString(it.Value()))
	}
	require.NoError(t, it.Close())
	return all
}

// TestFormat holds the bytes in the store: databases that are there must stay readable.
func TestFormat(t *testing.T) {
	d := inMemory(t)
	update(t, d, func(tx walletdb.ReadWriteTx) {
		a := bucketOf(t, tx, "a")
		require.NoError(t, a.Put([]byte("k"), []byte("v")))
		require.NoError(t, a.SetSequence(258))
		b, err := a.CreateBucket([]byte("b"))
		require.NoError(t, err)
		require.NoError(t, b.Put([]byte{0}, nil))
	})
	require.Equal(t, []string{
		"0061=0101",                 // root: entry "a" is bucket 1
		"01010062=0101",             // bucket 1: entry "b" is bucket 1
		"0101006b=0076",             // entry "k" is value "v"
		"0101010100" + "00" + "=00", // bucket 1 of bucket 1: entry 0 is an empty value
		"010102=0000000000000102",   // sequence
		"010103=01",                 // the last number
		"03=01",
		"04=01", // format
	}, rows(t, d))
}

// TestDeletedBucketsLeaveNothing has the store as it was before, but for the numbers that were given out.
func TestDeletedBucketsLeaveNothing(t *testing.T) {
	d := inMemory(t)
	update(t, d, func(tx walletdb.ReadWriteTx) {
		require.NoError(t, bucketOf(t, tx, "kept").Put([]byte("k"), []byte("v")))
	})
	before := rows(t, d)
	for round := range 300 { // numbers of one byte, and of two
		update(t, d, func(tx walletdb.ReadWriteTx) {
			b := bucketOf(t, tx, "gone")
			for i := range 3 {
				require.NoError(t, b.Put(fmt.Appendf(nil, "%d", i), []byte("v")))
				require.NoError(t, b.SetSequence(9))
				var err error
				b, err = b.CreateBucket([]byte("\xff\xff"))
				require.NoError(t, err)
			}
		})
		if round%2 == 0 {
			require.NoError(t, d.store.Flush(t.Context()))
		}
		update(t, d, func(tx walletdb.ReadWriteTx) {
			require.NoError(t, tx.DeleteTopLevelBucket([]byte("gone")))
			require.Nil(t, tx.ReadBucket([]byte("gone")))
		})
	}
	after := rows(t, d)
	require.Equal(t, "03=ad02", after[len(after)-2], "301 was the last number")
	after[len(after)-2] = before[len(before)-2]
	require.Equal(t, before, after)
}

func TestDeletedBucketsTakeNothing(t *testing.T) {
	d := inMemory(t)
	update(t, d, func(tx walletdb.ReadWriteTx) {
		a := bucketOf(t, tx, "a")
		b, err := a.CreateBucket([]byte("b"))
		require.NoError(t, err)
		require.NoError(t, b.Put([]byte("k"), []byte("v")))
		c, cursor := b.ReadWriteCursor(), a.ReadWriteCursor()
		key, _ := c.First()
		require.Equal(t, "k", string(key))
		cursor.First()
		require.Equal(t, walletdb.ErrIncompatibleValue, cursor.Delete())
		require.NoError(t, tx.DeleteTopLevelBucket([]byte("a")))

		again := bucketOf(t, tx, "a")
		for _, dead := range []walletdb.ReadWriteBucket{a, b} {
			require.Equal(t, walletdb.ErrBucketNotFound, dead.Put([]byte("k"), nil))
			require.Equal(t, walletdb.ErrBucketNotFound, dead.Delete([]byte("k")))
			require.Equal(t, walletdb.ErrBucketNotFound, dead.SetSequence(1))
			require.Equal(t, walletdb.ErrBucketNotFound, dead.DeleteNestedBucket([]byte("b")))
			_, err = dead.CreateBucketIfNotExists([]byte("b"))
			require.Equal(t, walletdb.ErrBucketNotFound, err)
			require.Nil(t, dead.Get([]byte("k")))
			require.Nil(t, dead.NestedReadBucket([]byte("b")))
			require.Zero(t, dead.Sequence())
			require.True(t, walletdb.BucketIsEmpty(dead))
			require.NoError(t, dead.ForEach(func(_, _ []byte) error { return errStop }))
		}
		key, _ = c.Next()
		require.Nil(t, key)
		require.Equal(t, walletdb.ErrBucketNotFound, c.Delete())
		require.True(t, walletdb.BucketIsEmpty(again), "it is another bucket")
		require.Same(t, again, tx.ReadWriteBucket([]byte("a")))
	})
	require.Equal(t, []string{"a/"}, dump(t, d))
}

func TestLimits(t *testing.T) {
	d := inMemory(t)
	long := bytes.Repeat([]byte{'k'}, maxKeySize)
	update(t, d, func(tx walletdb.ReadWriteTx) {
		b := bucketOf(t, tx, "b")
		depth := 1
		for {
			child, err := b.CreateBucket([]byte("b"))
			if err != nil {
				require.ErrorIs(t, err, walletdb.ErrKeyTooLarge)
				break
			}
			b = child
			depth++
		}
		require.Greater(t, depth, 2000)
		require.NoError(t, b.Put(long, long), "in the deepest, too")
		require.Equal(t, long, b.Get(long))
		require.Equal(t, walletdb.ErrKeyTooLarge, b.Put(append(long, 0), nil))
		require.Equal(t, walletdb.ErrValueTooLarge, b.Put([]byte("k"), make([]byte, kv.MaxValueSize)))
		_, err := bucketOf(t, tx, "c").CreateBucket(append(long, 0))
		require.Equal(t, walletdb.ErrKeyTooLarge, err)
	})
}

// TestWritesInAReadTx are refused, whatever the bucket was asked for.
func TestWritesInAReadTx(t *testing.T) {
	d := inMemory(t)
	update(t, d, func(tx walletdb.ReadWriteTx) {
		_, err := bucketOf(t, tx, "b").CreateBucket([]byte("c"))
		require.NoError(t, err)
	})
	view(t, d, func(tx walletdb.ReadTx) {
		b := tx.ReadBucket([]byte("b")).(walletdb.ReadWriteBucket)
		for _, b := range []walletdb.ReadWriteBucket{b, b.NestedReadWriteBucket([]byte("c"))} {
			_, create := b.CreateBucket([]byte("n"))
			_, next := b.NextSequence()
			c := b.ReadWriteCursor()
			c.First()
			for _, err := range []error{create, next, b.Put([]byte("k"), nil), b.Delete([]byte("k")), b.SetSequence(1),
				b.DeleteNestedBucket([]byte("c")), c.Delete(), b.Tx().DeleteTopLevelBucket([]byte("b")),
				b.Tx().Commit()} {
				require.Equal(t, walletdb.ErrTxNotWritable, err)
			}
		}
		require.Nil(t, tx.ReadBucket([]byte("none")))
		require.Nil(t, tx.ReadBucket(nil))
	})
}
