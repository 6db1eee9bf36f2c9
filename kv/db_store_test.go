package kv

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/version"
)

// closeAtEnd closes a store with the test, unless the test has closed it.
func closeAtEnd(tb testing.TB, db *DB) {
	tb.Cleanup(func() {
		if !db.closed.Load() {
			require.NoError(tb, db.Close())
		}
		db = nil // a parallel test that has ended keeps its functions until all tests end
	})
}

// openMem opens a store of its own in memory, closed at the end of the test.
func openMem(tb testing.TB, o *Options) *DB {
	tb.Helper()
	var opts Options
	if o != nil {
		opts = *o
	}
	opts.InMemory = true
	db, err := Open("db", &opts)
	require.NoError(tb, err)
	closeAtEnd(tb, db)
	return db
}

// openDir opens the store in a directory.
func openDir(tb testing.TB, dir string, o *Options) *DB {
	tb.Helper()
	db, err := Open(dir, o)
	require.NoError(tb, err)
	return db
}

func set(tb testing.TB, db *DB, key, value string) {
	storetest.Fine(tb, db.Set([]byte(key), []byte(value), NoSync))
}

// untilResumed returns when the store takes writes, and nobody resumes it any more.
func (d *DB) untilResumed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.failure != nil || d.resumer.running {
		d.progress.Wait()
	}
}

// settle returns when the store has done in the background all that follows from what
// was asked of it so far: it has resumed, nothing is left to flush or to compact, and
// obsolete files are removed, except those that readers need. Calls that return, Open
// and Flush among them, leave such work behind.
func (d *DB) settle() { settle(d) }

// installed returns the current version. It takes mu, so a test may ask while the store works.
func (d *DB) installed() *version.Version {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.current
}

// abandonLikeACrash releases the store's directory and does not close the store. It leaves what a killed process would.
func (d *DB) abandonLikeACrash(t *testing.T) {
	t.Helper()
	d.settle()
	require.NoError(t, d.abandon())
}
