package vfs

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCopyFile(t *testing.T) {
	from, to := NewMem(), NewMem()
	data := make([]byte, 2*copyBytes+5)
	for i := range data {
		data[i] = byte(i % 251)
	}
	require.NoError(t, writeFile(from, "a", data))
	pieces := 0
	require.NoError(t, CopyFile(to, "b", from, "a", func() error { pieces++; return nil }))
	require.Equal(t, 3, pieces)
	f, err := to.Open("b")
	require.NoError(t, err)
	got := make([]byte, len(data))
	_, err = f.ReadAt(got, 0)
	require.NoError(t, err)
	require.Equal(t, data, got)
	size, err := f.Size()
	require.NoError(t, err)
	require.EqualValues(t, len(data), size)
	require.NoError(t, f.Close())

	enough := errors.New("enough")
	require.ErrorIs(t, CopyFile(to, "c", from, "a", func() error { return enough }), enough)
}
