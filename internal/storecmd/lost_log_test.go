package storecmd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A store that was closed cleanly and whose log has lost its bytes has lost writes for certain.
func TestARepairIsCertainOfAnEmptiedLog(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(log string) error{
		"emptied": func(log string) error { return os.Truncate(log, 0) },
		"missing": os.Remove,
	} {
		dir := filepath.Join(t.TempDir(), "store")
		ok(t, "put", dir, "apple", "red", "--create")
		logs, err := filepath.Glob(filepath.Join(dir, "*.wal"))
		require.NoError(t, err)
		require.Len(t, logs, 1)
		require.NoError(t, spoil(logs[0]))
		status, _, _ := siftkv(t, "verify", dir)
		require.Equal(t, statusDamage, status, name)
		for _, args := range [][]string{{"repair", dir, "--dry-run"}, {"repair", dir}} {
			status, out, _ := siftkv(t, args...)
			require.Equal(t, statusDamage, status, name)
			require.Contains(t, out, "\nlost: "+filepath.Base(logs[0])+": records of the log: 1 writes "+
				"(sequence numbers 1 to 1), of any key\n", name)
		}
	}
}
