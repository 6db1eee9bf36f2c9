package kv

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// dropPages makes the system forget the pages of the tables in dir.
func dropPages(b *testing.B, dir string) {
	for _, name := range tablesIn(b, dir) {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // an input of a compaction, which the store has removed
		}
		require.NoError(b, err)
		require.NoError(b, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
		require.NoError(b, f.Close())
	}
}
