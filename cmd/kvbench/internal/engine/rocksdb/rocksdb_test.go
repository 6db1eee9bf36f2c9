//go:build rocksdb

package rocksdb

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func open(t *testing.T, options string) *DB {
	t.Helper()
	d, err := Open(t.TempDir(), "create_if_missing=true;"+options, true)
	require.NoError(t, err)
	t.Cleanup(d.Close)
	return d
}

func TestValuesOfAnySizeComeBackWhole(t *testing.T) {
	d := open(t, "")
	sizes := []int{0, 1, 100, 4096, 100_000}
	for i, n := range sizes {
		require.NoError(t, d.Set(fmt.Appendf(nil, "key %d", i), bytes.Repeat([]byte{byte(i)}, n), i == 1))
	}
	for range 2 {
		for i, n := range sizes {
			for _, dst := range [][]byte{nil, []byte("prefix"), make([]byte, 0, n), make([]byte, 3, n+3)} {
				value, found, err := d.Get(dst, fmt.Appendf(nil, "key %d", i))
				require.NoError(t, err)
				require.True(t, found)
				require.Equal(t, string(dst)+string(bytes.Repeat([]byte{byte(i)}, n)), string(value))
			}
		}
		value, found, err := d.Get([]byte("kept"), []byte("nothing"))
		require.NoError(t, err)
		require.False(t, found)
		require.Equal(t, "kept", string(value))
		require.NoError(t, d.Flush())
	}
}

func TestScansGoOnWhereABufferEnds(t *testing.T) {
	d := open(t, "")
	b := NewBatch()
	defer b.Close()
	const n = 2000
	for i := range n {
		size := 50
		if i == 700 {
			size = 3 * scanBytes
		}
		b.Put(fmt.Appendf(nil, "%05d", i), bytes.Repeat([]byte{byte(i)}, size))
	}
	require.Equal(t, n, b.Len())
	require.NoError(t, d.Write(b, false))
	require.Zero(t, b.Len())
	for _, c := range []struct{ start, limit, want int }{{0, 0, n}, {0, 10, 10}, {n - 5, 10, 5}, {690, 20, 20},
		{n, 0, 0}, {500, 1, 1}} {
		next := c.start
		require.NoError(t, d.Scan(fmt.Appendf(nil, "%05d", c.start), c.limit, func(key, value []byte) {
			require.Equal(t, fmt.Sprintf("%05d", next), string(key))
			require.Equal(t, byte(next), value[len(value)-1])
			next++
		}))
		require.Equal(t, c.want, next-c.start)
	}
}

func TestLookupsDoNotAllocate(t *testing.T) {
	d := open(t, "")
	key := []byte("key")
	require.NoError(t, d.Set(key, make([]byte, 100), false))
	dst := make([]byte, 0, 200)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, found, err := d.Get(dst, key); err != nil || !found {
			t.Error(err)
		}
	}))
}

func TestWritesDoNotAllocate(t *testing.T) {
	d := open(t, "")
	key, value := []byte("key"), make([]byte, 100)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if err := d.Set(key, value, false); err != nil {
			t.Error(err)
		}
	}))
}

func TestErrorsSayWhatIsWrong(t *testing.T) {
	_, err := Open(t.TempDir(), "write_buffer=7", false)
	require.ErrorContains(t, err, "write_buffer")
	_, err = Open(t.TempDir(), "", false)
	require.ErrorContains(t, err, "does not exist")
}

func TestMetricsAreParsed(t *testing.T) {
	require.Equal(t, map[string]int64{"rocksdb.memtable.hit": 7, "rocksdb.l0.hit": 0}, parseTickers(
		"rocksdb.memtable.hit COUNT : 7\nrocksdb.l0.hit COUNT : 0\nrocksdb.db.get.micros "+
			"P50 : 1.0 P95 : 2.0 COUNT : 3 SUM : 4\n\nx COUNT : y\n"))
	var l Level
	l.addProperties("# data blocks=3; # entries=40; index block size (user-key? 1, delta-value? 1)=50; " +
		"filter block size=60; raw average key size=24.000000; ")
	require.Equal(t, Level{Entries: 40, IndexBytes: 50, FilterBytes: 60}, l)

	d := open(t, "")
	require.NoError(t, d.Set([]byte("a"), []byte("1"), false))
	_, _, err := d.Get(nil, []byte("a"))
	require.NoError(t, err)
	require.EqualValues(t, 1, d.Tickers()["rocksdb.memtable.hit"])
	require.NoError(t, d.Flush())
	require.Equal(t, 1, d.Levels()[0].Files)
	require.EqualValues(t, 1, d.Levels()[0].Entries)
	d.Compact()
	require.Empty(t, d.Property("rocksdb.no.such.property"))
	require.Zero(t, d.Number("rocksdb.no.such.property"))

	quiet, err := Open(t.TempDir(), "create_if_missing=true", false)
	require.NoError(t, err)
	defer quiet.Close()
	require.Nil(t, quiet.Tickers())
}
