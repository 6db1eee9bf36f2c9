package siftvault_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/vault/sdk/physical"
	"github.com/stretchr/testify/require"

	siftvault "github.com/siftkv/siftkv/adapters/vault"
)

// What the store warns of reaches an operator who asks for warnings alone, with its level and its fields.
func TestWarningsAreWarnings(t *testing.T) {
	dir := t.TempDir()
	b, err := siftvault.New(map[string]string{"path": dir}, nil)
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, b.Put(t.Context(), &physical.Entry{Key: "k", Value: make([]byte, 1000)}))
	}
	require.NoError(t, b.(*siftvault.Backend).Close())
	logs, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	require.NoError(t, err)
	require.Len(t, logs, 1)
	data, err := os.ReadFile(logs[0])
	require.NoError(t, err)
	data[len(data)-1] ^= 1
	require.NoError(t, os.WriteFile(logs[0], data, 0o600))

	var out bytes.Buffer
	logger := hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: &out})
	b, err = siftvault.New(map[string]string{"path": dir, "RecoveryMode": "SkipCorrupt"}, logger)
	require.NoError(t, err)
	require.NoError(t, b.(*siftvault.Backend).Close())
	require.Contains(t, out.String(), "[WARN]")
	require.Contains(t, out.String(), "recovery drops writes")
	require.Contains(t, out.String(), "offset=")
}
