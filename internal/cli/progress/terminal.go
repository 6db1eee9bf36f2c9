package progress

import (
	"io"
	"os"
)

// IsTerminal reports whether what is written to w is shown on a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isTerminal(f.Fd())
}
