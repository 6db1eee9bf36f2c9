package objstore

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMemSmoke(t *testing.T) {
	s, ctx := NewMem(), t.Context()
	require.NoError(t, s.Put(ctx, "a/b", bytes.NewReader([]byte("hello")), 5))
	require.NoError(t, s.PutIfAbsent(ctx, "a/c", []byte("x")))
	require.ErrorIs(t, s.PutIfAbsent(ctx, "a/c", []byte("y")), ErrExists)
	p := make([]byte, 3)
	n, err := s.GetRange(ctx, "a/b", -3, p)
	require.NoError(t, err)
	require.Equal(t, "llo", string(p[:n]))
	n, err = s.GetRange(ctx, "a/b", 3, p)
	require.Equal(t, io.EOF, err)
	require.Equal(t, "lo", string(p[:n]))
	var keys []string
	for o, err := range s.List(ctx, "a/", "a/b") {
		require.NoError(t, err)
		keys = append(keys, o.Key)
	}
	require.Equal(t, []string{"a/c"}, keys)
}
