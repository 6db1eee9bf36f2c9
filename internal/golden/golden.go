// Package golden compares what tests make with files next to them, and rewrites those
// files when a test is run with -update. It defines that flag, once for all packages: a
// test that rewrites files in a way of its own asks Update.
//
// The name of such a test contains Golden: `make golden` runs the tests of that name.
package golden

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files again")

// Update reports whether to rewrite golden files.
func Update() bool { return *update }

// Absent reports whether -update should write the missing file at a path. It is for files that an older version has
// written and every later one reads: those are never rewritten.
func Absent(path string) bool {
	_, err := os.Stat(path)
	return *update && errors.Is(err, fs.ErrNotExist)
}

// File compares got with the file at path, which -update writes. A difference
// means that a format has changed: what was stored before can no longer be read,
// or a report looks different.
func File[T ~string | ~[]byte](tb testing.TB, path string, got T) {
	tb.Helper()
	requireName(tb)
	if *update {
		Write(tb, path, got)
	}
	want, err := os.ReadFile(path)
	require.NoError(tb, err, "run go test with -update, which writes the file, and read it")
	const wanted = "%s: if the change is wanted, run go test with -update and read the difference"
	if utf8.Valid(want) {
		require.Equal(tb, string(want), string(got), wanted, path)
	}
	require.True(tb, string(want) == string(got), wanted, path) // a diff of it would be unreadable
}

// Write writes a golden file, for tests that compare in a way of their own.
func Write[T ~string | ~[]byte](tb testing.TB, path string, got T) {
	tb.Helper()
	requireName(tb)
	require.NoError(tb, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(tb, os.WriteFile(path, []byte(got), 0o644))
}

// requireName requires that `make golden` runs a test.
func requireName(tb testing.TB) {
	tb.Helper()
	test, _, _ := strings.Cut(tb.Name(), "/")
	require.Contains(tb, test, "Golden", "make golden runs tests of that name")
}
