package cli

import (
	"errors"
	"io"
	"strings"
	"syscall"
)

// A UsageError is a command line that cannot be read.
type UsageError struct{ text string }

func (e *UsageError) Error() string { return e.text }

// Text returns an error as one line that says everything once: of errors that were
// joined, those are left out that the line says already.
func Text(err error) string {
	var line strings.Builder
	for part := range strings.SplitSeq(err.Error(), "\n") {
		if part == "" || strings.Contains(line.String(), part) {
			continue
		}
		if line.Len() > 0 {
			line.WriteString("; ")
		}
		line.WriteString(part)
	}
	return line.String()
}

// Output is standard output for a program that has more to do than to print: once its
// reader has gone, what is written is dropped and the program goes on.
func Output(w io.Writer) io.Writer { return output{w} }

type output struct{ w io.Writer }

// Write implements io.Writer.
func (o output) Write(b []byte) (int, error) {
	n, err := o.w.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		return len(b), nil
	}
	return n, err
}
