//go:build unix

package siftraft

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/siftkv/siftkv/kv"
	"github.com/stretchr/testify/require"
)

// CURRENT has the mode of the stores that it names.
func TestCurrentHasTheModeOfStores(t *testing.T) {
	umask := syscall.Umask(0)
	syscall.Umask(umask)
	for _, given := range []fs.FileMode{0, 0o640} {
		dir := t.TempDir()
		openFSM(t, dir, &FSMOptions{Store: &kv.Options{FileMode: given}})
		info, err := os.Stat(filepath.Join(dir, currentName))
		require.NoError(t, err)
		want := max(given, 0o600) &^ fs.FileMode(umask)
		require.Equal(t, want, info.Mode())
	}
}
