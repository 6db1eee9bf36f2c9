package readset

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/rangedel"
)

func TestTracker(t *testing.T) {
	none := Tracker{} // of a transaction that cannot write
	require.NoError(t, none.AddKey([]byte("a")))
	none.AddSpan(rangedel.Span{})
	require.True(t, none.Empty())

	r := Tracker{Limit: 200}
	require.NoError(t, r.AddKey([]byte("a")))
	r.AddSpan(rangedel.Span{Lo: []byte("b"), Hi: []byte("c")})
	require.NoError(t, r.Err)
	require.False(t, r.Empty())
	require.ErrorIs(t, r.AddKey(make([]byte, 200)), base.ErrTooLarge)
	require.True(t, r.Empty(), "it gives back its memory")
	require.ErrorIs(t, r.AddKey([]byte("a")), base.ErrTooLarge)

	r = Tracker{Limit: 200, Err: errors.New("ended")}
	r.AddSpan(rangedel.Span{})
	require.Error(t, r.AddKey(nil))
	require.True(t, r.Empty())
}
