// Package tracetest reads lookup traces for the tests of programs that make them.
package tracetest

import (
	"errors"
	"hash/maphash"
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
	// Sum is the same of two traces, within a process, that have the same lookups in any order.
	Sum uint64
}

var seed = maphash.MakeSeed()

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
		sum := maphash.Bytes(seed, l.Key)
		if l.Found {
			c.Found++
			sum *= 3
		} else {
			c.Absent++
		}
		c.Sum += sum
	}
	require.Zero(t, r.Dropped())
	c.Distinct = len(keys)
	return c
}
