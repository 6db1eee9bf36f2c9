package kv

import (
	"errors"
	"testing"
	"time"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/stretchr/testify/require"
)

// TestNothingIsWrittenAfterAFailure keeps edits away from a manifest that may no
// longer be the one in force.
func TestNothingIsWrittenAfterAFailure(t *testing.T) {
	db, err := Open("", &Options{InMemory: true, backoff: backoff{time.Hour, time.Hour}})
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
