package golden

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// withUpdate runs a function as if the tests had been started with -update.
func withUpdate(run func()) {
	defer func(before bool) { *update = before }(*update)
	*update = true
	run()
}

// A recorder hears of failures in place of the test.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) FailNow()              { panic(r) }

// fails reports whether a check fails.
func fails(t *testing.T, check func(tb testing.TB)) bool {
	t.Helper()
	r := &recorder{TB: t}
	func() {
		defer func() {
			if got := recover(); got != nil {
				require.Same(t, r, got)
			}
		}()
		check(r)
	}()
	return r.failed
}

func TestGoldenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "testdata", "deep", "a.golden")
	withUpdate(func() { require.True(t, Absent(path)) })
	if !Update() {
		require.False(t, Absent(path))
		require.True(t, fails(t, func(tb testing.TB) { File(tb, path, "one") }), "there is no file yet")
	}
	withUpdate(func() { File(t, path, "one") })
	File(t, path, "one")
	File(t, path, []byte("one"))
	withUpdate(func() { require.False(t, Absent(path)) })
	if !Update() {
		require.True(t, fails(t, func(tb testing.TB) { File(tb, path, "two") }))
	}
	withUpdate(func() { File(t, path, []byte{0xff, 0}) })
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, []byte{0xff, 0}, data)
}

// A misnamed test is one that `make golden` would pass by.
type misnamed struct{ testing.TB }

func (misnamed) Name() string { return "TestFile/Golden" }

func TestTheNameOfAGoldenTestIsRequired(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.golden")
	require.NoError(t, os.WriteFile(path, []byte("one"), 0o600))
	for _, check := range []func(tb testing.TB){
		func(tb testing.TB) { File(tb, path, "one") },
		func(tb testing.TB) { Write(tb, path, "one") },
	} {
		require.True(t, fails(t, func(tb testing.TB) { check(misnamed{tb}) }))
	}
}
