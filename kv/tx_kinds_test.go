package kv

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// What comes to the store otherwise than by Set and Delete counts as written too.
func TestTxConflictsWithEveryWayToWrite(t *testing.T) {
	t.Parallel()
	ingest := func(writes ...string) func(*testing.T, *DB) {
		return func(t *testing.T, db *DB) {
			path := ingestFile(t, vfs.OS, filepath.Join(t.TempDir(), "file"), nil, writes...)
			require.NoError(t, db.Ingest(t.Context(), []string{path}, nil))
		}
	}
	for what, c := range map[string]struct {
		read, other func(*testing.T, *Tx)
		write       func(*testing.T, *DB)
	}{
		"ingested value":  {lookUp("k"), lookUp("a", "l"), ingest("k=1")},
		"ingested delete": {lookUp("old"), lookUp("k"), ingest("-old")},
		"ingested range":  {moves("o", "p", "Fn"), moves("a", "o", "Fn"), ingest("o..p")},
		"phantom":         {moves("j", "m", "Fn"), moves("l", "m", "Fn"), ingest("k=1")},
		"operand": {lookUp("old"), lookUp("k"), func(t *testing.T, db *DB) {
			require.NoError(t, db.Merge([]byte("old"), []byte("x"), nil))
		}},
		"expiring": {moves("", "", "F"), moves("", "", "L"), func(t *testing.T, db *DB) {
			require.NoError(t, db.SetTTL([]byte("k"), nil, time.Hour, nil))
		}},
	} {
		for _, settled := range []bool{false, true} {
			db := openMem(t, &Options{Merger: Append(",")})
			require.NoError(t, db.Set([]byte("old"), []byte("v"), nil))
			for i, reads := range []func(*testing.T, *Tx){c.read, c.other} {
				tx := beginTx(t, db, true)
				reads(t, tx)
				c.write(t, db)
				if settled {
					require.NoError(t, db.Compact(t.Context(), nil, nil))
				}
				require.NoError(t, tx.Set([]byte("mine"), nil))
				if conflicts := i == 0; conflicts {
					require.ErrorIs(t, tx.Commit(nil), ErrConflict, what)
				} else {
					require.NoError(t, tx.Commit(nil), what)
				}
			}
		}
	}
}

// A transaction sees combined values, and its own writes over operands.
func TestTxOverOperands(t *testing.T) {
	db := openMem(t, &Options{Merger: Append(",")})
	require.NoError(t, db.Set([]byte("a"), []byte("1"), nil))
	require.NoError(t, db.Merge([]byte("a"), []byte("2"), nil))
	require.NoError(t, db.Merge([]byte("b"), []byte("3"), nil))
	require.NoError(t, db.Merge([]byte("c"), []byte("4"), nil))
	tx := beginTx(t, db, true)
	require.NoError(t, db.Merge([]byte("a"), []byte("later"), nil))
	require.Equal(t, storetest.Model{"a": "1,2", "b": "3", "c": "4"}, contents(t, tx, nil))
	require.NoError(t, tx.Set([]byte("b"), []byte("own")))
	require.NoError(t, tx.Delete([]byte("c")))
	require.Equal(t, storetest.Model{"a": "1,2", "b": "own"}, contents(t, tx, nil))
	v, err := tx.Get([]byte("b"))
	require.NoError(t, err)
	require.Equal(t, "own", string(v))
	require.NoError(t, tx.DeleteRange([]byte("a"), []byte("b")))
	_, err = tx.Get([]byte("a"))
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorIs(t, tx.Commit(nil), ErrConflict, "a got an operand")
}
