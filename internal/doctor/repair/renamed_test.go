package repair

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/kv"
)

// A table is known by its id, which is in the file and in the manifest: one that bears another's name is found, and
// nothing of it is lost.
func TestTablesUnderOtherNamesAreFoundByTheirIDs(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "one goroutine repairs")
	rename := func(t *testing.T, from, to string) { require.NoError(t, os.Rename(from, to)) }
	for name, c := range map[string]struct {
		spoil  func(t *testing.T, dir string, tables []string)
		losses int
	}{
		"exchanged": {func(t *testing.T, dir string, tables []string) {
			rename(t, tables[0], filepath.Join(dir, "x"))
			rename(t, tables[1], tables[0])
			rename(t, filepath.Join(dir, "x"), tables[1])
		}, 0},
		"in a circle": {func(t *testing.T, dir string, tables []string) {
			rename(t, tables[2], filepath.Join(dir, "x"))
			rename(t, tables[1], tables[2])
			rename(t, tables[0], tables[1])
			rename(t, filepath.Join(dir, "x"), tables[0])
		}, 0},
		"a name that is not listed": {func(t *testing.T, dir string, tables []string) {
			rename(t, tables[1], filepath.Join(dir, manifest.FileName(manifest.FileTable, 77)))
		}, 0},
		"over another": {func(t *testing.T, _ string, tables []string) { rename(t, tables[1], tables[0]) }, 1},
	} {
		for _, closed := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "store")
				now := threeTables(t, dir, closed)
				c.spoil(t, dir, filesOf(t, dir, manifest.FileTable))
				before := snapshotDir(t, dir)
				dry, err := Run(t.Context(), dir, Options{DryRun: true})
				require.NoError(t, err)
				out := filepath.Join(t.TempDir(), "out")
				toOut, err := Run(t.Context(), dir, Options{Out: out})
				require.NoError(t, err)
				r, err := Run(t.Context(), dir, Options{})
				require.NoError(t, err)
				require.True(t, r.Needed)
				require.Equal(t, "manifest", r.Levels, "%+v", r.Damage)
				require.Equal(t, dry.Lost, r.Lost)
				require.Equal(t, toOut.Lost, r.Lost)
				got := contents(t, dir)
				require.Equal(t, got, contents(t, out))
				for file, data := range before {
					requireSomewhere(t, dir, file, data, name)
				}
				lost := 0
				for _, l := range r.Lost {
					if !l.Possible { // what a log may have had that has no end, is
						lost++
					}
				}
				require.Equal(t, c.losses, lost, "%+v", r.Lost)
				if c.losses == 0 {
					require.Equal(t, now, got)
				} else {
					require.True(t, r.LostForSure())
					require.Len(t, got, len(now)-1)
				}
			})
		}
	}
}

// threeTables makes a store with three tables of one key each, and a key that they share.
func threeTables(t *testing.T, dir string, closed bool) (now map[string]string) {
	t.Helper()
	from := filepath.Join(t.TempDir(), "open")
	now = map[string]string{}
	db, err := kv.Open(from, nil)
	require.NoError(t, err)
	for _, key := range []string{"a", "b", "c"} {
		for _, key := range []string{key, "shared"} {
			now[key] = "value of " + key + " at " + string(rune(len(now)+'0'))
			require.NoError(t, db.Set([]byte(key), []byte(now[key]), nil))
		}
		require.NoError(t, db.Flush(t.Context()))
	}
	if closed {
		require.NoError(t, db.Close())
	}
	copyOpen(t, from, dir)
	if !closed {
		require.NoError(t, db.Close())
	}
	return now
}
