package siftwalletdb

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/btcsuite/btcwallet/walletdb"
	"github.com/stretchr/testify/require"
)

// filled makes a bucket of the keys 00 to 99.
func filled(t testing.TB, d *db) {
	update(t, d, func(tx walletdb.ReadWriteTx) {
		b := bucketOf(t, tx, "b")
		for i := range 100 {
			require.NoError(t, b.Put(fmt.Appendf(nil, "%02d", i), fmt.Appendf(nil, "v%d", i)))
		}
	})
}

// TestDeleteUnderTheCursor deletes every third entry on the way, forward and then backward.
func TestDeleteUnderTheCursor(t *testing.T) {
	d := inMemory(t)
	filled(t, d)
	update(t, d, func(tx walletdb.ReadWriteTx) {
		c := bucketOf(t, tx, "b").ReadWriteCursor()
		require.NoError(t, c.Delete(), "it is nowhere")
		var seen []string
		for k, v := c.First(); k != nil; k, v = c.Next() {
			require.Equal(t, fmt.Sprint("v", len(seen)), string(v))
			if len(seen)%3 == 0 {
				require.NoError(t, c.Delete())
				require.NoError(t, c.Delete(), "it is on nothing")
			}
			seen = append(seen, string(k))
		}
		require.Len(t, seen, 100)
		n := 0
		for k, _ := c.Last(); k != nil; k, _ = c.Prev() {
			n++
			if string(k)[1] == '5' {
				require.NoError(t, c.Delete())
			}
		}
		require.Equal(t, 66, n)
	})
	view(t, d, func(tx walletdb.ReadTx) {
		n := 0
		require.NoError(t, tx.ReadBucket([]byte("b")).ForEach(func(k, _ []byte) error {
			n++
			i := 10*int(k[0]-'0') + int(k[1]-'0')
			require.False(t, i%3 == 0 || i%10 == 5, i)
			return nil
		}))
		require.Equal(t, 66-7, n) // 05, 25, 35, 55, 65, 85, 95 but for those by three
	})
}

// TestCursorsSeeWhatIsWritten goes over keys that come and go before and behind them.
func TestCursorsSeeWhatIsWritten(t *testing.T) {
	d := inMemory(t)
	filled(t, d)
	update(t, d, func(tx walletdb.ReadWriteTx) {
		b := bucketOf(t, tx, "b")
		c := b.ReadWriteCursor()
		at := func(want string, key, _ []byte) {
			t.Helper()
			require.Equal(t, want, string(key))
		}
		k, v := c.Seek([]byte("50"))
		at("50", k, v)
		require.NoError(t, b.Put([]byte("500"), []byte("new")))
		k, v = c.Next()
		at("500", k, v)
		require.Equal(t, "new", string(v))
		require.NoError(t, b.Delete([]byte("50")))
		k, v = c.Prev()
		at("49", k, v)
		require.NoError(t, b.Delete([]byte("49")))
		k, v = c.Next()
		at("500", k, v)
		require.NoError(t, b.Delete([]byte("500")))
		require.NoError(t, b.Put([]byte("500"), nil))
		_, err := b.CreateBucket([]byte("501"))
		require.NoError(t, err)
		k, v = c.Next()
		at("501", k, v)
		require.Nil(t, v)
		require.Equal(t, walletdb.ErrIncompatibleValue, c.Delete())
		k, v = c.Seek([]byte("zz"))
		at("", k, v)
		require.NoError(t, c.Delete(), "it is behind all")
		require.NoError(t, b.Put([]byte("zzz"), []byte("last")))
		k, v = c.Next()
		at("zzz", k, v)
		require.NoError(t, c.Delete())
		k, v = c.Next()
		at("", k, v)
		k, v = c.Prev()
		at("99", k, v)
		require.NoError(t, c.Delete())
		require.NoError(t, b.Put([]byte("99"), []byte("again")))
		require.NoError(t, c.Delete(), "it is before the new entry")
		k, v = c.Next()
		at("99", k, v)
		require.Equal(t, "again", string(v))
	})
}

// TestRowsOfAScanAreTheCallers keeps all rows of a scan, and appends to each key and value and changes it: no other
// changes. Rows of many sizes come out of chunks, or have memory of their own.
func TestRowsOfAScanAreTheCallers(t *testing.T) {
	d := inMemory(t)
	sizes := []int{0, 1, 40, 300, maxChunk / 4, maxChunk/4 + 1, maxChunk / 2, maxChunk, 2 * maxChunk}
	const rows = 300
	update(t, d, func(tx walletdb.ReadWriteTx) {
		b := bucketOf(t, tx, "b")
		for i := range rows {
			value := bytes.Repeat([]byte{byte(i)}, sizes[i%len(sizes)])
			require.NoError(t, b.Put(fmt.Appendf(nil, "%03d", i), value))
		}
	})
	view(t, d, func(tx walletdb.ReadTx) {
		var kept [][]byte
		c := tx.ReadBucket([]byte("b")).ReadCursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			kept = append(kept, k, v)
		}
		require.Len(t, kept, 2*rows)
		require.NoError(t, tx.ReadBucket([]byte("b")).ForEach(func(k, v []byte) error {
			kept = append(kept, k, v)
			return nil
		}))
		want := make([][]byte, len(kept))
		for i, s := range kept {
			want[i] = bytes.Clone(s)
		}
		for i, s := range kept {
			_ = append(s, "behind"...)
			for j := range s {
				s[j] ^= 0xFF
				want[i][j] ^= 0xFF
			}
		}
		require.Equal(t, want, kept)
	})
}

// TestLargeRowsTakeNoChunk of which most would be left over.
func TestLargeRowsTakeNoChunk(t *testing.T) {
	tx := &tx{}
	for _, size := range []int{maxChunk/4 + 1, maxChunk/2 + 1, maxChunk, maxChunk + 1} {
		key, value := tx.copies([]byte("k"), make([]byte, size-1))
		require.Len(t, key, 1)
		require.Len(t, value, size-1)
		require.Zero(t, cap(tx.chunk), size)
	}
}

// TestManyCursors has more cursors than iterators; each is where it was.
func TestManyCursors(t *testing.T) {
	d := inMemory(t)
	filled(t, d)
	view(t, d, func(tx walletdb.ReadTx) {
		b := tx.ReadBucket([]byte("b"))
		var cursors []walletdb.ReadCursor
		for i := range 100 {
			c := b.ReadCursor()
			k, _ := c.Seek(fmt.Appendf(nil, "%02d", i))
			require.Equal(t, fmt.Sprintf("%02d", i), string(k))
			cursors = append(cursors, c)
			require.LessOrEqual(t, d.store.Metrics().Iterators, maxIterators)
		}
		for _, back := range []int{0, 5} {
			for i, c := range cursors[:99-back] {
				k, _ := c.Next()
				require.Equal(t, fmt.Sprintf("%02d", i+1), string(k))
				k, _ = c.Prev()
				require.Equal(t, fmt.Sprintf("%02d", i), string(k))
			}
		}
		require.Equal(t, maxIterators, d.store.Metrics().Iterators)
	})
	require.Zero(t, d.store.Metrics().Iterators)
}

// TestForEachMayWrite has it see what was there before.
func TestForEachMayWrite(t *testing.T) {
	d := inMemory(t)
	filled(t, d)
	update(t, d, func(tx walletdb.ReadWriteTx) {
		b := bucketOf(t, tx, "b")
		n := 0
		require.NoError(t, b.ForEach(func(k, _ []byte) error {
			n++
			require.NoError(t, b.Put(append([]byte("9"), k...), nil))
			return b.Delete(k)
		}))
		require.Equal(t, 100, n)
		require.Equal(t, errStop, b.ForEach(func(_, _ []byte) error { return errStop }))
	})
	tx, err := d.BeginReadWriteTx()
	require.NoError(t, err)
	b := tx.ReadWriteBucket([]byte("b"))
	require.Equal(t, walletdb.ErrTxClosed, b.ForEach(func(_, _ []byte) error { return tx.Rollback() }))
	require.Equal(t, walletdb.ErrTxClosed, b.ForEach(func(_, _ []byte) error { return errStop }))
}
