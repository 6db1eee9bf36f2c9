package siftraft

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
)

// A log without options takes the memory of a small store, and one with options what they say.
func TestLogsAreSmallByDefault(t *testing.T) {
	for want, o := range map[string]*kv.Options{"MemoryLimit = 32MiB\n": nil, "": {}} {
		dir := t.TempDir()
		s, err := Open(dir, o)
		require.NoError(t, err)
		require.NoError(t, s.Close())
		text, err := os.ReadFile(filepath.Join(dir, "SIFTKV-OPTIONS"))
		require.NoError(t, err)
		if want == "" {
			require.NotContains(t, string(text), "MemoryLimit")
		} else {
			require.Contains(t, string(text), want)
		}
	}
}
