//go:build !rocksdb

package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
)

func TestWithoutRocksDBTheErrorSaysHowToGetIt(t *testing.T) {
	require.NotContains(t, Peers(), RocksDBName)
	_, err := Open(RocksDBName, t.TempDir(), settings)
	require.ErrorIs(t, err, bench.ErrUsage)
	require.ErrorContains(t, err, "librocksdb-dev")
	_, err = NewVariant(RocksDBName, "bloom:10", newValues(t))
	require.ErrorIs(t, err, bench.ErrUsage)
	require.ErrorContains(t, err, "-tags rocksdb")
	require.ErrorContains(t, CheckName("--engine", "rocks", Peers()), "choose from siftkv")
}
