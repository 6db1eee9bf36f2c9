package avalanche_test

import (
	"fmt"
	"testing"

	"github.com/ava-labs/avalanchego/database"
	"github.com/ava-labs/avalanchego/database/dbtest"
	"github.com/ava-labs/avalanchego/database/leveldb"
	"github.com/ava-labs/avalanchego/utils/logging"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/adapters/avalanche"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/metrics"
)

func open(tb testing.TB) *avalanche.Database {
	tb.Helper()
	db, err := avalanche.Open(tb.TempDir(), nil, kv.NoSync)
	require.NoError(tb, err)
	return db
}

// The host's own suite.
func TestInterface(t *testing.T) {
	for name, test := range dbtest.Tests {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			test(t, db)
			if err := db.Close(); err != nil {
				require.Equal(t, database.ErrClosed, err, "the test has closed it")
			}
		})
	}
}

func FuzzKeyValue(f *testing.F) { dbtest.FuzzKeyValue(f, opened(f)) }

func FuzzNewIteratorWithPrefix(f *testing.F) { dbtest.FuzzNewIteratorWithPrefix(f, opened(f)) }

func FuzzNewIteratorWithStartAndPrefix(f *testing.F) {
	dbtest.FuzzNewIteratorWithStartAndPrefix(f, opened(f))
}

func opened(f *testing.F) *avalanche.Database {
	db := open(f)
	f.Cleanup(func() { require.NoError(f, db.Close()) })
	return db
}

// The host's own benchmarks, on its usual store too, which does not sync its writes.
func BenchmarkInterface(b *testing.B) {
	for _, size := range dbtest.BenchmarkSizes {
		keys, values := dbtest.SetupBenchmark(b, size[0], size[1], size[2])
		for name, bench := range dbtest.Benchmarks {
			for store, open := range map[string]func() database.Database{
				"siftkv":  func() database.Database { return open(b) },
				"leveldb": func() database.Database { return openLevelDB(b) },
			} {
				name := fmt.Sprintf("op=%s/pairs=%d/key=%d/value=%d/store=%s", name, size[0], size[1], size[2], store)
				b.Run(name, func(b *testing.B) {
					db := open()
					bench(b, db, keys, values)
					require.NoError(b, db.Close())
				})
			}
		}
	}
}

func openLevelDB(tb testing.TB) database.Database {
	tb.Helper()
	db, err := leveldb.New(tb.TempDir(), nil, logging.NoLog{}, prometheus.NewRegistry())
	require.NoError(tb, err)
	return db
}

func TestHealth(t *testing.T) {
	db := open(t)
	details, err := db.HealthCheck(t.Context())
	require.NoError(t, err)
	require.IsType(t, &metrics.Store{}, details)
	require.NoError(t, db.Close())
	_, err = db.HealthCheck(t.Context())
	require.Equal(t, database.ErrClosed, err)
}

// What has no name in avalanchego keeps that of kv; an iterator that was left open is no error of Close,
// and what went wrong beside it is.
func TestErrors(t *testing.T) {
	db := open(t)
	require.ErrorIs(t, db.Put(make([]byte, kv.MaxKeySize+1), nil), kv.ErrTooLarge)
	require.NoError(t, db.Put([]byte("k"), []byte("v")))
	it := db.NewIterator()
	require.True(t, it.Next())
	require.NoError(t, db.Close(), "with an iterator open")
	require.Equal(t, "k", string(it.Key()))
	require.False(t, it.Next())
	require.Equal(t, database.ErrClosed, it.Error())
	it.Release()
	require.Equal(t, database.ErrClosed, it.Error())
	_, err := avalanche.Open("/dev/null", nil, nil)
	require.Error(t, err)
}
