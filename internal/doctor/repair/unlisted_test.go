package repair

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// crashed writes a store and returns a copy of what it had when it was still open, and
// what is in it.
func crashed(t *testing.T, write func(set func(k, v string), db *kv.DB)) (dir string, now map[string]string) {
	t.Helper()
	from := filepath.Join(t.TempDir(), "open")
	db, err := kv.Open(from, nil)
	require.NoError(t, err)
	now = map[string]string{}
	write(func(k, v string) {
		require.NoError(t, db.Set([]byte(k), []byte(v), kv.Sync))
		now[k] = v
	}, db)
	dir = filepath.Join(t.TempDir(), "store")
	copyOpen(t, from, dir)
	require.NoError(t, db.Close())
	return dir, now
}

// bringIn leaves in a store what an ingest of three files does that has come to the
// second: its mark, and two tables.
func bringIn(t *testing.T, dir string, first uint64) []string {
	t.Helper()
	ingest := manifest.Ingest{First: first, Last: first + 2}
	require.NoError(t, os.WriteFile(filepath.Join(dir, ingest.FileName()), nil, 0o600))
	var names []string
	for num := first; num < ingest.Last; num++ {
		name := manifest.FileName(manifest.FileTable, num)
		f, err := os.Create(filepath.Join(dir, name))
		require.NoError(t, err)
		w := sstable.NewWriter(f, nil)
		require.NoError(t, w.Set(fmt.Appendf(nil, "key%03d", 50*(num-first)), []byte("half of an ingest")))
		require.NoError(t, w.DeleteRange(fmt.Appendf(nil, "key%03d", 50*(num-first)+1),
			fmt.Appendf(nil, "key%03d", 50*(num-first)+9)))
		_, err = w.Finish()
		require.NoError(t, err)
		require.NoError(t, f.Close())
		names = append(names, name)
	}
	return names
}

// Half of an ingest is no damage, and no repair takes it in: neither if the manifest
// tells that it was never finished, nor if only the ingest's mark does.
func TestHalfOfAnIngestIsLeftOut(t *testing.T) {
	for name, c := range map[string]struct {
		lost     []manifest.FileKind
		possible bool
	}{
		"nothing lost":  {},
		"CURRENT lost":  {lost: []manifest.FileKind{manifest.FileCurrent}},
		"manifest lost": {lost: []manifest.FileKind{manifest.FileManifest}, possible: true},
		"manifest and CURRENT": {lost: []manifest.FileKind{manifest.FileManifest, manifest.FileCurrent},
			possible: true},
		"manifest and log damaged": {lost: []manifest.FileKind{manifest.FileManifest, manifest.FileWAL},
			possible: true},
	} {
		for _, inLog := range []bool{false, true} {
			if inLog && strings.Contains(name, "log") {
				continue // then its writes are gone
			}
			dir, now := crashed(t, func(set func(k, v string), db *kv.DB) {
				set("key004", "in a table")
				set("key060", "in another")
				require.NoError(t, db.Flush(t.Context()))
				if inLog {
					set("key000", "in the log")
				}
			})
			half := bringIn(t, dir, 40)
			for _, kind := range c.lost {
				for _, file := range filesOf(t, dir, kind) {
					require.NoError(t, os.Remove(file))
				}
			}
			before := snapshotDir(t, dir)
			r, err := Run(t.Context(), dir, Options{})
			require.NoError(t, err, name)
			require.Equal(t, len(c.lost) > 0, r.Needed, "%s: %v", name, r.Damage)
			for file, data := range before {
				requireSomewhere(t, dir, file, data, name)
			}
			require.False(t, r.LostForSure(), "%s: %+v", name, r.Lost)
			for _, f := range r.Files {
				_, ok := manifest.ParseIngest(f.Name)
				require.False(t, ok && f.Action != LeftOut, "%+v", f)
			}
			for _, file := range half {
				told := slices.ContainsFunc(r.Lost, func(l Loss) bool { return l.File == file && l.Possible })
				require.Equal(t, c.possible, told, "%s: %+v", name, r.Lost)
				if r.Needed {
					require.FileExists(t, filepath.Join(dir, LostDir, file), name)
					require.Contains(t, fmt.Sprint(r.Notes), "ingest the files again")
				}
			}
			require.Equal(t, now, contents(t, dir), name)
		}
	}
}

// A mark of an ingest whose edit is in the manifest leaves nothing out.
func TestAnIngestThatTheManifestListsCounts(t *testing.T) {
	dir, now := crashed(t, func(set func(k, v string), db *kv.DB) {
		set("key001", "before")
		path := filepath.Join(t.TempDir(), "file")
		f, err := os.Create(path)
		require.NoError(t, err)
		w := sstable.NewWriter(f, nil)
		require.NoError(t, w.Set([]byte("key002"), []byte("ingested")))
		_, err = w.Finish()
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.NoError(t, db.Ingest(t.Context(), []string{path}, nil))
	})
	now["key002"] = "ingested"
	for _, file := range filesOf(t, dir, manifest.FileIngest) {
		t.Fatalf("%s: the ingest has ended", file)
	}
	all := manifest.Ingest{First: 1, Last: 99}
	require.NoError(t, os.WriteFile(filepath.Join(dir, all.FileName()), nil, 0o600))
	require.NoError(t, os.Remove(filepath.Join(dir, manifest.CurrentName)))
	r, err := Run(t.Context(), dir, Options{})
	require.NoError(t, err)
	require.False(t, r.LostForSure())
	require.Equal(t, now, contents(t, dir))
}

// A flush that a crash kept from being listed has the writes of a log that is damaged
// too.
func TestAFlushThatIsNotListedMakesUpForADamagedLog(t *testing.T) {
	keys := map[string][]version{}
	dir, now := crashed(t, func(set func(k, v string), db *kv.DB) {
		set("key900", "in a table")
		require.NoError(t, db.Flush(t.Context()))
		for i := range 20 {
			k := fmt.Sprintf("key%03d", i)
			set(k, "in the log")
			keys[k] = []version{{seq: uint64(2 + i), value: "in the log"}}
		}
	})
	log := filesOf(t, dir, manifest.FileWAL)[0]
	data, err := os.ReadFile(log)
	require.NoError(t, err)
	data[len(data)/2] ^= 1
	require.NoError(t, os.WriteFile(log, data, 0o600))
	without := filepath.Join(t.TempDir(), "without")
	copyDir(t, dir, without)
	writeTable(t, dir, 70, keys, nil)

	r, err := Run(t.Context(), without, Options{})
	require.NoError(t, err)
	require.True(t, r.LostForSure())
	require.Less(t, len(contents(t, without)), len(now))
	r, err = Run(t.Context(), dir, Options{})
	require.NoError(t, err)
	require.Equal(t, "manifest", r.Levels)
	require.Equal(t, now, contents(t, dir))
}

// Where a crash explains how the log breaks off, a repair goes as far as Open does:
// what is after was never acknowledged as synced, and would have a hole before it.
func TestARepairEndsHistoryWhereOpenDoes(t *testing.T) {
	from := filepath.Join(t.TempDir(), "open")
	db, err := kv.Open(from, nil)
	require.NoError(t, err)
	for i := range 300 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "key%03d", i), make([]byte, 1000), kv.NoSync))
	}
	dir := filepath.Join(t.TempDir(), "store")
	copyOpen(t, from, dir)
	require.NoError(t, db.Close())
	log := filesOf(t, dir, manifest.FileWAL)[0]
	data, err := os.ReadFile(log)
	require.NoError(t, err)
	clear(data[100<<10 : 104<<10])
	require.NoError(t, os.WriteFile(log, data, 0o600))
	opened := filepath.Join(t.TempDir(), "opened")
	copyDir(t, dir, opened)
	want := contents(t, opened)
	require.Greater(t, len(want), 50)
	require.Less(t, len(want), 150)

	require.NoError(t, os.Remove(filepath.Join(dir, manifest.CurrentName)))
	r, err := Run(t.Context(), dir, Options{})
	require.NoError(t, err)
	require.False(t, r.LostForSure(), "%+v", r.Lost)
	require.True(t, maps.Equal(want, contents(t, dir)))
}
