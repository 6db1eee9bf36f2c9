package objects

import (
	"bytes"
	"io"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// A reply that is damaged on its way is requested again before its bytes are used. No copy of a store has damaged
// bytes, and no error says that an undamaged object is damaged.
func TestNoCopyHasWhatWasDamagedOnItsWay(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(t *testing.T, db *kv.DB, want storetest.Model){
		"Checkpoint": func(t *testing.T, db *kv.DB, want storetest.Model) {
			dir := filepath.Join(t.TempDir(), "checkpoint")
			require.NoError(t, db.Checkpoint(t.Context(), dir))
			requireWholeCopy(t, dir, want)
		},
		"Backup": func(t *testing.T, db *kv.DB, want storetest.Model) {
			var stream bytes.Buffer
			_, err := db.Backup(t.Context(), &stream, kv.BackupMark{})
			require.NoError(t, err)
			dir := filepath.Join(t.TempDir(), "restored")
			require.NoError(t, kv.Restore(t.Context(), &stream, dir, nil))
			requireWholeCopy(t, dir, want)
		},
		"Ingest": func(t *testing.T, db *kv.DB, want storetest.Model) {
			file := filepath.Join(t.TempDir(), "new.sst")
			storetest.IngestFile(t, vfs.OS, file, nil, "zz=ingested")
			require.NoError(t, db.Ingest(t.Context(), []string{file}, nil))
			_, err := db.Get([]byte("zz"))
			require.NoError(t, err)
			require.NoError(t, db.DeleteRange([]byte("z"), nil, kv.NoSync))
			storetest.RequireContents(t, want, db)
		},
		"Compact": func(t *testing.T, db *kv.DB, want storetest.Model) {
			require.NoError(t, db.Compact(t.Context(), nil, nil))
			storetest.RequireContents(t, want, db)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for nth := int64(1); ; nth++ {
				struck := false
				t.Run(strconv.FormatInt(nth, 10), func(t *testing.T) { struck = damagedReply(t, nth, do) })
				if !struck || t.Failed() {
					require.Greater(t, nth, int64(1))
					return
				}
			}
		})
	}
}

// damagedReply does something while the nth GET brings damaged bytes, and reports whether there were so many.
func damagedReply(t *testing.T, nth int64, do func(t *testing.T, db *kv.DB, want storetest.Model)) bool {
	s := objstore.NewMem()
	db, want := objectsWith(t, s, 700)
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Close())
	faults := objstoretest.NewFaults(s, uint64(nth))
	db = openObjects(t, faults, &kv.Options{CacheSize: -1, BlockSize: 16 << 10})
	var gets atomic.Int64
	faults.Inject(func(c objstoretest.Call) objstoretest.Fault {
		return objstoretest.Fault{Corrupt: c.Kind == objstore.Get && gets.Add(1) == nth}
	})
	do(t, db, want)
	require.NoError(t, db.Close())
	return gets.Load() >= nth
}

// requireWholeCopy requires that a store in a directory is undamaged and has everything.
func requireWholeCopy(t *testing.T, dir string, want storetest.Model) {
	t.Helper()
	require.NoError(t, kv.Verify(t.Context(), dir, io.Discard))
	db := stores.OpenDir(t, dir, nil)
	storetest.RequireContents(t, want, db)
	require.NoError(t, db.Close())
}
