package kv

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/stretchr/testify/require"
)

// openView opens a view of the store in a directory.
func openView(tb testing.TB, dir string, o *Options) *DB {
	tb.Helper()
	db, err := OpenReadOnly(dir, o)
	require.NoError(tb, err)
	closeAtEnd(tb, db)
	return db
}

// openWriter opens a store, which is closed with the test if not before.
func openWriter(tb testing.TB, dir string, o *Options) *DB {
	tb.Helper()
	db := openDir(tb, dir, o)
	closeAtEnd(tb, db)
	return db
}

func TestARefreshThatIsBrokenOffLeavesTheView(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := openWriter(t, dir, nil)
	set(t, w, "k", "1")
	view := openView(t, dir, nil)
	set(t, w, "k", "2")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, view.Refresh(ctx), context.Canceled)
	requireContents(t, storetest.Model{"k": "1"}, view)

	// While another refresh is under way.
	<-view.follower.turn
	ctx, cancel = context.WithCancel(t.Context())
	refreshed := make(chan error)
	go func() { refreshed <- view.Refresh(ctx) }()
	cancel()
	require.ErrorIs(t, <-refreshed, context.Canceled)
	view.follower.turn <- struct{}{}

	require.NoError(t, view.Refresh(t.Context()))
	requireContents(t, storetest.Model{"k": "2"}, view)
}

// A listingFS changes what is listed.
type listingFS struct {
	vfs.FS
	list func(names []string) []string
}

func (l *listingFS) List(dir string) ([]string, error) {
	names, err := l.FS.List(dir)
	return l.list(names), err
}

// A log that the writer gives up again before it writes to it, just when a reader comes to
// it, does not make the reader start over with the log before: also if it has to read on
// in the manifest at that moment, since a sequence number that no write has looks like one
// that the log is ahead.
func TestAViewOutlivesALogThatIsGivenUp(t *testing.T) {
	mem := vfs.NewMem()
	w := openDir(t, "db", &Options{harness: harness.Harness{FS: mem}})
	w.commits.NextSeq() // of a commit that failed
	set(t, w, "k", "1")
	require.NoError(t, w.commits.Exclusive(context.Background(), w.commits.Log().End))
	view, err := OpenReadOnly("db", &Options{harness: harness.Harness{FS: &listingFS{mem,
		func(names []string) []string {
			require.NoError(t, w.applyEdit(func() *manifest.Edit { return &manifest.Edit{} }, func() {}))
			return append(names, manifest.FileName(manifest.FileWAL, w.commits.Log().ID()+1)) // and it is gone
		}}}})
	require.NoError(t, err)
	requireContents(t, storetest.Model{"k": "1"}, view)
	require.NoError(t, view.Refresh(t.Context()))
	require.NoError(t, view.Close())
}

// A reader sees an edit of the manifest that fails, since its bytes are there. The
// manifest that replaces the broken one does not have it: the reader goes back to the
// logs, and on.
func TestAViewOutlivesAnEditThatFails(t *testing.T) {
	mem := vfs.NewMem()
	f := &vfstest.FaultFS{FS: mem}
	w := openDir(t, "db", &Options{harness: harness.Harness{FS: f, Backoff: never}})
	set(t, w, "a", "1")
	view, err := OpenReadOnly("db", &Options{harness: harness.Harness{FS: mem}})
	require.NoError(t, err)
	syncs := 0
	f.Set(func(c vfstest.Call) (int, error) {
		if c.Op == "sync" {
			if syncs++; syncs == 2 { // of the table, of the manifest
				return 0, errDisk
			}
		}
		return 0, nil
	})
	require.ErrorContains(t, w.Flush(t.Context()), "writing the manifest failed")
	requireRefreshed := func() {
		t.Helper()
		require.NoError(t, view.Refresh(t.Context()))
		requireContents(t, storetest.Model{"a": "1"}, view)
	}
	requireRefreshed()
	require.NoError(t, replaceManifest(w))
	requireRefreshed()
	require.NoError(t, w.resume(true))
	requireRefreshed()
	require.NoError(t, view.Close())
}

func TestAViewRefusesAFeatureThatItDoesNotKnow(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := openWriter(t, dir, nil)
	set(t, w, "k", "1")
	view := openView(t, dir, nil)
	set(t, w, "k", "2")
	require.NoError(t, w.manifest.Append(&manifest.Edit{Features: 1 << 40}))
	err := view.Refresh(t.Context())
	require.ErrorIs(t, err, ErrNewerFormat)
	require.ErrorContains(t, err, "0x10000000000")
	requireContents(t, storetest.Model{"k": "1"}, view)
	_, err = OpenReadOnly(dir, nil)
	require.ErrorIs(t, err, ErrNewerFormat)

	again := filepath.Join(t.TempDir(), "copy") // which is not locked
	require.NoError(t, os.CopyFS(again, os.DirFS(dir)))
	before := readDir(t, again)
	_, err = Open(again, nil)
	require.ErrorIs(t, err, ErrNewerFormat)
	require.NotErrorIs(t, err, ErrCorruption)
	after, lock := readDir(t, again), filepath.Join(again, manifest.LockName)
	after[lock] = before[lock]
	require.Equal(t, before, after, "nothing was touched")
}
