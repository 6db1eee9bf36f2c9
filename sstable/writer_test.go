package sstable_test

import (
	"io"
	"testing"

	"github.com/siftkv/siftkv/sstable"
	"github.com/stretchr/testify/require"
)

// Without sequence numbers nothing tells which of two entries of a key is newer.
func TestWriterTakesAKeyOnce(t *testing.T) {
	set := func(w *sstable.Writer) error { return w.Set([]byte("a"), []byte("1")) }
	del := func(w *sstable.Writer) error { return w.Delete([]byte("a")) }
	for _, twice := range [][2]func(*sstable.Writer) error{{set, set}, {set, del}, {del, set}, {del, del}} {
		w := sstable.NewWriter(io.Discard, nil)
		require.NoError(t, twice[0](w))
		require.ErrorIs(t, twice[1](w), sstable.ErrOrder)
		require.ErrorIs(t, w.Set([]byte("b"), nil), sstable.ErrOrder)
		_, err := w.Finish()
		require.ErrorIs(t, err, sstable.ErrOrder)
	}
}
