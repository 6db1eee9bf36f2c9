//go:build unix

package kv

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A pipe in place of a file is not waited for: of SIFTKV-OPTIONS, on which nothing depends, it is replaced, and of
// CURRENT and LOCK it is an error that names it.
func TestOpenDoesNotWaitForPipes(t *testing.T) {
	dir := t.TempDir()
	open := func() error {
		db, err := Open(dir, nil)
		if err != nil {
			return err
		}
		return db.Close()
	}
	pipe := func(name string) {
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
		require.NoError(t, syscall.Mkfifo(filepath.Join(dir, name), 0o600))
	}
	require.NoError(t, open())
	pipe("SIFTKV-OPTIONS")
	require.NoError(t, open())
	info, err := os.Stat(filepath.Join(dir, "SIFTKV-OPTIONS"))
	require.NoError(t, err)
	require.True(t, info.Mode().IsRegular())
	current, err := os.ReadFile(filepath.Join(dir, "CURRENT"))
	require.NoError(t, err)
	for _, name := range []string{"CURRENT", "LOCK"} {
		pipe(name)
		_, readOnly := Open(dir, &Options{ReadOnly: true})
		for _, err := range []error{open(), readOnly} {
			require.ErrorContains(t, err, name)
			require.ErrorContains(t, err, "it is a pipe")
		}
		require.NoError(t, os.Remove(filepath.Join(dir, "CURRENT")))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "CURRENT"), current, 0o600))
	}
}
