package kv

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/vfs"
)

// A value of SetReader under operands that cannot be combined stays where it is, whatever lies apart otherwise: flushes
// and compactions do not write it again.
func TestAValueUnderOperandsThatFailStaysWhereItIs(t *testing.T) {
	for _, from := range []int{-1, 100} {
		fsys := vfs.NewMem()
		merger := NewMerger("no", func(_, _, _ []byte) ([]byte, error) { return nil, errors.New("no") })
		db, err := Open("db", &Options{fs: fsys, SeparateFrom: from, leastStreamed: 10, Merger: merger})
		require.NoError(t, err)
		setReader(t, db, "k", strings.Repeat("v", 5000), NoSync)
		require.NoError(t, db.Merge([]byte("k"), []byte("x"), NoSync))
		before := blobsOnDisk(t, fsys, "db")
		require.Len(t, before, 1)
		require.NoError(t, db.Flush())
		require.NoError(t, db.Compact(nil, nil))
		require.Equal(t, 1, requireBlobs(t, db))
		require.Equal(t, before, blobsOnDisk(t, fsys, "db"))
		_, err = db.Get([]byte("k"))
		require.ErrorIs(t, err, ErrMergeFailed)
		require.NoError(t, db.Close())
	}
}
