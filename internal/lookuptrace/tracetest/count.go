// Package tracetest reads lookup traces for the tests of programs that make them.
package tracetest

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/lookuptrace"
)

// A Count is what a trace has.
type Count struct {
	Found, Absent int // lookups
	Distinct      int // keys
}

// Read counts the lookups of a trace, which has keys, its end, and all that was recorded; else the test fails.
func Read(t testing.TB, path string) (c Count) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	r, err := lookuptrace.NewReader(f, path)
	require.NoError(t, err)
	keys := make(map[string]bool)
	for {
		l, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.NotNil(t, l.Key, "the trace has keys")
		keys[string(l.Key)] = true
		if l.Found {
			c.Found++
		} else {
			c.Absent++
		}
	}
	require.Zero(t, r.Dropped())
	c.Distinct = len(keys)
	return c
}
