//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package survey_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/vfs"
)

// An interposedContext calls a function whenever it is asked whether it has ended.
type interposedContext struct {
	context.Context
	asked func()
}

func (c interposedContext) Err() error {
	c.asked()
	return c.Context.Err()
}

// The shape of a store whose directory is replaced meanwhile is that of the store, and an error says so.
func TestTheDirectoryOfAStoreIsReplaced(t *testing.T) {
	t.Parallel()
	dir := copyStore(t)
	want, err := shapeOf(t.Context(), dir)
	require.NoError(t, err)
	swapped := false
	ctx := interposedContext{t.Context(), func() {
		if !swapped {
			swapped = true
			require.NoError(t, os.Rename(dir, dir+".old"))
			require.NoError(t, os.Mkdir(dir, 0o700))
		}
	}}
	st, err := shapeOf(ctx, dir)
	require.ErrorIs(t, err, vfs.ErrMoved)
	require.ErrorContains(t, err, "opened as "+dir)
	require.Equal(t, want, st)
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, names)
}
