package kv

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// dropPages makes the system forget the pages of the tables in dir.
func dropPages(b *testing.B, dir string) { dropPagesOf(b, tablesIn(b, dir)) }

// dropAllPages is dropPages that has it forget blob files too.
func dropAllPages(b *testing.B, dir string) {
	blobs, err := filepath.Glob(filepath.Join(dir, "*.blob"))
	require.NoError(b, err)
	dropPagesOf(b, append(tablesIn(b, dir), blobs...))
}

func dropPagesOf(b *testing.B, names []string) {
	for _, name := range names {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // an input of a compaction, which the store has removed
		}
		require.NoError(b, err)
		require.NoError(b, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
		require.NoError(b, f.Close())
	}
}
