package filtertest

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Golden compares encoded filters of a few sizes with testdata, which -update
// writes. A difference means that files on disk can no longer be read.
func Golden(t *testing.T, specs ...string) {
	t.Helper()
	for _, spec := range specs {
		var text strings.Builder
		for _, n := range []int{0, 1, 2, 100} {
			data := Build(t, spec, Good(1), n)
			fmt.Fprintf(&text, "%s, %d keys, %d bytes\n%s", spec, n, len(data), hex.Dump(data))
		}
		name := strings.NewReplacer(":", "-", ",", "x").Replace(spec) + ".golden"
		File(t, filepath.Join("testdata", name), text.String())
	}
}

// File compares text with a file, which -update writes.
func File(t *testing.T, path, text string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run go test with -update")
	require.Equal(t, string(want), text, path)
}
