package storecmd

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/cli"
)

// A file that cannot be read has no faults: nobody knows what is in it.
func TestALogThatCannotBeReadIsAnError(t *testing.T) {
	for _, name := range []string{"000001.wal", "MANIFEST-000001"} {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.Mkdir(path, 0o700)) // it can be opened, and not read
		var out bytes.Buffer
		p := &program{out: bufio.NewWriter(&out)}
		for _, dump := range []interface {
			Run(ctx context.Context, p *program) error
		}{&dumpWALCommand{cli.File(path)}, &dumpManifestCommand{cli.File(path)}} {
			err := dump.Run(t.Context(), p)
			require.Error(t, err)
			require.NoError(t, p.out.Flush())
			require.NotErrorIs(t, err, base.ErrCorruption)
			require.ErrorContains(t, err, name)
			require.Empty(t, out.String())
		}
	}
}
