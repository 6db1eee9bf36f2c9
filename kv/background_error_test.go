package kv

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/kv/objects"
)

// TestNothingIsWrittenAfterAFailure keeps edits away from a manifest that may no
// longer be the one in force.
func TestNothingIsWrittenAfterAFailure(t *testing.T) {
	db, err := Open("", &Options{InMemory: true, harness: harness.Harness{Backoff: never}})
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("k"), nil, nil))
	cause := errors.New("the disk is gone")
	require.ErrorIs(t, db.fail(brokenManifest, writingManifest, cause), cause)
	size := db.manifest.Size()
	err = db.applyEdit(func() *manifest.Edit { return &manifest.Edit{LogNum: 99} }, func() {})
	require.ErrorIs(t, err, cause)
	require.ErrorIs(t, err, ErrReadOnly)
	require.Equal(t, size, db.manifest.Size())
	ok, err := db.Has([]byte("k"))
	require.NoError(t, err)
	require.True(t, ok, "reads go on")
	require.NoError(t, db.Close())
}

// inObjects returns a DB that is in an object store, as far as errors tell.
func inObjects(ops objectdir.Ops) *DB {
	d := &DB{place: place{dir: objectdir.Root}, opts: Options{Objects: &objects.Config{}}}
	d.objects = &objectStore{Ops: &ops, d: d, localDir: "logs"}
	return d
}

// The error of a failed write names what it was written to. A store in an object store has no disk to look at.
func TestTheAdviceNamesWhatWasWrittenTo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		db   *DB
		want string
	}{
		{"a directory", &DB{place: place{dir: "db"}}, "the disk of db"},
		{"an object store", inObjects(objectdir.Ops{}), "the object store"},
		{"a log on the disk", inObjects(objectdir.Ops{LocalLog: true}), "logs or the object store"},
	} {
		advice := func(err error) string { return c.db.describeFailure("a write", err).Error() }
		require.Regexp(t, "; if it does not, check "+c.want+"$", advice(io.ErrClosedPipe), c.name)
		if c.db.opts.Objects != nil {
			for _, err := range []error{io.ErrClosedPipe, syscall.ENOSPC, fs.ErrNotExist, fs.ErrPermission} {
				require.NotContains(t, advice(err), objectdir.Root, c.name)
				require.Contains(t, advice(err), c.want, c.name)
			}
		}
	}
}
