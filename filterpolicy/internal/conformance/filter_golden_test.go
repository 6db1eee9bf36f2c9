package conformance

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/siftkv/siftkv/internal/golden"
)

// goldenPath returns the path of a golden file, which stays with its family.
func goldenPath(family, name string) string {
	return filepath.Join("..", "..", family, "testdata", name)
}

// Golden compares encoded filters of a few sizes with their family's testdata, which -update
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
		golden.File(t, goldenPath(Policy(t, spec).Name(), name), text.String())
	}
}
