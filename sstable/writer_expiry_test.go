package sstable

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The zero Time is never; a moment that has no number of microseconds is an error, and the file goes on.
func TestMomentsOfExpiry(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b, nil)
	require.NoError(t, w.SetUntil([]byte("a"), []byte("for good"), time.Time{}))
	require.ErrorIs(t, w.SetUntil([]byte("b"), nil, time.UnixMicro(1<<63-1).Add(time.Microsecond)), ErrInvalidTTL)
	require.NoError(t, w.SetUntil([]byte("b"), []byte("nearly"), time.UnixMicro(1<<63-1)))
	info, err := w.Finish()
	require.NoError(t, err)
	require.EqualValues(t, 2, info.Entries)
	r, err := NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()), nil)
	require.NoError(t, err)
	value, err := r.Get([]byte("a"))
	require.NoError(t, err)
	require.Equal(t, "for good", string(value))
}
