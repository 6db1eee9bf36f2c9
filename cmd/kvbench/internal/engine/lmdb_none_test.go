//go:build !lmdb

package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
)

func TestWithoutLMDBTheErrorSaysHowToGetIt(t *testing.T) {
	require.NotContains(t, Peers(), LMDBName)
	_, err := Open(LMDBName, t.TempDir(), settings)
	require.ErrorIs(t, err, bench.ErrUsage)
	require.ErrorContains(t, err, "liblmdb-dev")
	require.ErrorContains(t, err, "-tags lmdb")
}
