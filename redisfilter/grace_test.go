package redisfilter

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/inprocess"
	"github.com/siftkv/siftkv/redisfilter/internal/nodes"
)

// A load waits for the commits of all programs, those too that were given a longer Grace than its own.
func TestGraceIsShared(t *testing.T) {
	t.Parallel()
	srv, err := inprocess.Start()
	require.NoError(t, err)
	t.Cleanup(srv.Close)
	c := openClient(t, srv.Addr())
	const grace = 400 * time.Millisecond
	hasty := openSet(t, c, "s", 1000, Options{Grace: time.Millisecond})
	slow := openSet(t, c, "s", 1000, Options{Grace: grace})
	require.NoError(t, slow.Close())
	begun, read := time.Now(), time.Duration(0)
	require.NoError(t, hasty.Load(t.Context(), func(context.Context, time.Time, func(...[]byte) error) error {
		read = time.Since(begun)
		return nil
	}))
	require.GreaterOrEqual(t, read, nodes.Lease+grace)
	require.Equal(t, grace, hasty.view.Load().cfg.Grace)
}
