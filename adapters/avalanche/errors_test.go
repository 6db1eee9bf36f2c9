package avalanche

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
)

func TestWithout(t *testing.T) {
	disk := errors.New("the disk is on fire")
	open := fmt.Errorf("%w: 2", kv.ErrIteratorsOpen)
	require.NoError(t, without(nil, kv.ErrIteratorsOpen))
	require.NoError(t, without(errors.Join(errors.Join(open)), kv.ErrIteratorsOpen))
	err := without(errors.Join(disk, errors.Join(open, kv.ErrSnapshotsOpen)), kv.ErrIteratorsOpen)
	require.ErrorIs(t, err, disk)
	require.ErrorIs(t, err, kv.ErrSnapshotsOpen)
	require.NotErrorIs(t, err, kv.ErrIteratorsOpen)

	why := fmt.Errorf("%w since the flush failed: %w; free some space", kv.ErrReadOnly, disk)
	require.Equal(t, why, without(why, kv.ErrIteratorsOpen))
	require.Equal(t, why.Error(), without(errors.Join(why, open), kv.ErrIteratorsOpen).Error())
}
