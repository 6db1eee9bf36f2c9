package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStatusOfEachError(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("disk on fire"), 1},
		{Usagef("--reps %d: must be at least 1", 0), 2},
		{fmt.Errorf("run: %w", Usagef("x")), 2},
		{fmt.Errorf("pebble: %w", ErrWrongAnswer), 3},
		{fmt.Errorf("row: %w", ErrIdentity), 3},
		{fmt.Errorf("loading: %w", context.Canceled), 130},
		{errors.Join(ErrWrongAnswer, context.Canceled), 3},
	} {
		require.Equal(t, tc.want, Status(tc.err), "%v", tc.err)
	}
}

func TestUsagefKeepsTextAndCause(t *testing.T) {
	err := Usagef("open keys: %w", fs.ErrNotExist)
	require.EqualError(t, err, "open keys: file does not exist")
	require.ErrorIs(t, err, ErrUsage)
	require.ErrorIs(t, err, fs.ErrNotExist)
}
