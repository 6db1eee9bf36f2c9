package storecmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The name of a directory does not speak to the terminal, whichever command prints it.
func TestControlCharactersOfADirectoryAreQuoted(t *testing.T) {
	t.Parallel()
	top := filepath.Join(t.TempDir(), "a\x1b[31m")
	dir, broken := filepath.Join(top, "store"), filepath.Join(top, "broken")
	require.NoError(t, os.Mkdir(top, 0o700))
	require.NoError(t, os.CopyFS(dir, os.DirFS(goldenStore(t))))
	require.NoError(t, os.CopyFS(broken, os.DirFS(dir)))
	flip(t, filepath.Join(broken, "000007.sst"), 40)
	require.NoError(t, os.Truncate(filepath.Join(broken, "000018.wal"), 100))
	for _, line := range []string{
		"stats DIR", "stats BROKEN", "verify DIR", "verify BROKEN", "repair DIR", "repair BROKEN --dry-run",
		"repair BROKEN --out TOP/out", "repair BROKEN", "get DIR nowhere", "scan DIR --count", "explain DIR rewritten",
		"compact DIR", "checkpoint DIR TOP/checkpoint", "copy DIR TOP/copy", "backup DIR TOP/bak",
		"backup --verify TOP/bak", "restore TOP/restored TOP/bak --verify", "dump-sstable DIR/000099.sst",
		"apply DIR --options Filter=none", "stats TOP/nowhere", "verify TOP/nowhere", "repair TOP",
		"put TOP/new a b --create", "create-slot DIR s", "create-slot DIR s", "changes DIR --slot s --until-now",
		"changes DIR --slot t", "slots DIR", "follow DIR TOP/followed --until-now", "follow DIR TOP/copy",
	} {
		var args []string
		for arg := range strings.FieldsSeq(line) {
			args = append(args, strings.NewReplacer("DIR", dir, "BROKEN", broken, "TOP", top).Replace(arg))
		}
		_, stdout, stderr := siftkv(t, args...)
		if strings.Contains(stdout+stderr, "\x1b") {
			t.Errorf("%s: %q", line, stdout+stderr)
		}
	}
}
