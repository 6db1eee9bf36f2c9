package storecmd

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
)

// A file of a newer format does not keep verify from the others, damaged ones among them.
func TestVerifyGoesOnAfterAFileOfANewerFormat(t *testing.T) {
	t.Parallel()
	dir := goldenStore(t)
	name := filepath.Join(dir, "000007.sst")
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	footer, version := data[len(data)-56:], uint32(99) // see docs/format.md
	binary.LittleEndian.PutUint32(footer[40:], base.Checksum(uint64(version), 0, footer[:40]))
	binary.LittleEndian.PutUint32(footer[44:], version)
	require.NoError(t, os.WriteFile(name, data, 0o600))
	flip(t, filepath.Join(dir, "000011.sst"), 40)
	status, out, stderr := siftkv(t, "verify", dir)
	require.Equal(t, statusError, status)
	require.Regexp(t, `000007.sst .*  not read\n`, out)
	require.Regexp(t, `000011.sst .*  DAMAGED\n`, out)
	require.Regexp(t, `000015.sst .*  ok\n`, out)
	require.Contains(t, stderr, "000007.sst: siftkv: newer format: version 99")
	status, _, stderr = siftkv(t, "repair", dir)
	require.Equal(t, statusError, status)
	require.Contains(t, stderr, "000007.sst: siftkv: newer format: version 99")
}
