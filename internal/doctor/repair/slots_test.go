package repair

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/doctor"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// storeWithSlot makes a store with a slot that needs two logs and an ingested file, with values that were deleted or
// overwritten since, and compacted away.
func storeWithSlot(t *testing.T) (dir string, now map[string]string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	db, err := kv.Open(dir, nil)
	require.NoError(t, err)
	_, snap, err := db.CreateSlot(t.Context(), "index")
	require.NoError(t, err)
	require.NoError(t, snap.Close())
	require.NoError(t, db.Set([]byte("logged"), []byte("old"), nil))
	require.NoError(t, db.Set([]byte("logged-too"), []byte("old"), nil))
	require.NoError(t, db.Flush(t.Context()))
	path := storetest.IngestFile(t, vfs.OS, filepath.Join(t.TempDir(), "in"), nil, "ingested=old", "ingested-too=old")
	require.NoError(t, db.Ingest(t.Context(), []string{path}, nil))
	require.NoError(t, db.Delete([]byte("logged"), nil))
	require.NoError(t, db.Delete([]byte("ingested"), nil))
	require.NoError(t, db.Set([]byte("logged-too"), []byte("new"), nil))
	require.NoError(t, db.Set([]byte("ingested-too"), []byte("new"), nil))
	require.NoError(t, db.Close())
	db, err = kv.Open(dir, nil) // the log becomes one that is kept
	require.NoError(t, err)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.NoError(t, db.Set([]byte("last"), []byte("write"), nil))
	require.Empty(t, db.Slots()[0].Lost)
	require.NoError(t, db.Close())
	require.Len(t, filesOf(t, dir, manifest.FileKept), 3)
	return dir, map[string]string{"logged-too": "new", "ingested-too": "new", "last": "write"}
}

// What only slots need brings nothing back when the manifest is lost, and the slot is lost.
func TestWhatIsKeptForSlotsIsNotTheStores(t *testing.T) {
	t.Parallel()
	for _, out := range []bool{false, true} {
		t.Run(strconv.FormatBool(out), func(t *testing.T) {
			t.Parallel()
			dir, now := storeWithSlot(t)
			dropManifest(t, dir)
			target, o := dir, Options{}
			if out {
				target = filepath.Join(t.TempDir(), "out")
				o.Out = target
			}
			r, err := Run(t.Context(), dir, o)
			require.NoError(t, err)
			require.Equal(t, now, contents(t, target), "%+v", r)
			require.Contains(t, fmt.Sprint(r.Notes), "slots are lost: drop them, and make them again: index")
			db, err := kv.Open(target, nil)
			require.NoError(t, err)
			_, err = db.OpenSlot("index")
			if out {
				require.ErrorIs(t, err, os.ErrNotExist)
			} else {
				require.ErrorIs(t, err, kv.ErrSlotLost)
			}
			require.NoError(t, db.Close())
			require.Empty(t, filesOf(t, target, manifest.FileKept))
		})
	}
}

// Damage of what only slots need is told as such. Without the slots there is none, and a repair loses them.
func TestDamageOfWhatIsKeptForSlots(t *testing.T) {
	t.Parallel()
	whole, now := storeWithSlot(t)
	verify := func(dir string, o survey.Options) *survey.Store {
		s, err := doctor.Verify(t.Context(), dir, o)
		require.NoError(t, err)
		return s
	}
	require.Empty(t, verify(whole, survey.Options{}).Damage)
	for what, spoil := range map[string]func(name string, data []byte) error{
		"a flipped bit": func(name string, data []byte) error {
			data[len(data)/2] ^= 1
			return os.WriteFile(name, data, 0o600)
		},
		"cut":     func(name string, data []byte) error { return os.Truncate(name, int64(len(data)-1)) },
		"empty":   func(name string, _ []byte) error { return os.Truncate(name, 0) },
		"missing": func(name string, _ []byte) error { return os.Remove(name) },
	} {
		files := filesOf(t, whole, manifest.FileKept)
		for i := range len(files) + 1 {
			slotFile := i == len(files)
			if slotFile && what == "missing" {
				continue
			}
			dir := filepath.Join(t.TempDir(), "store")
			copyDir(t, whole, dir)
			name := filepath.Join(dir, manifest.SlotName("index"))
			if !slotFile {
				name = filesOf(t, dir, manifest.FileKept)[i]
			}
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			require.NoError(t, spoil(name, data))
			s := verify(dir, survey.Options{})
			require.NotEmpty(t, s.Damage, "%s of %s", what, name)
			for _, d := range s.Damage {
				if slotFile {
					require.Contains(t, d.What, "the position of a slot: drop it")
				} else {
					require.Contains(t, d.What, "only slots need it: drop them, and make them again: index", what)
				}
			}
			repaired := filepath.Join(t.TempDir(), "repaired")
			copyDir(t, dir, repaired)
			_, err = Run(t.Context(), repaired, Options{})
			require.NoError(t, err)
			require.Equal(t, now, contents(t, repaired))
			for _, dir := range []string{dir, repaired} {
				db, err := kv.Open(dir, nil)
				require.NoError(t, err)
				if slotFile && dir == repaired {
					require.Empty(t, db.Slots(), "it is in lost")
				} else {
					require.Equal(t, dir == repaired || slotFile, db.Slots()[0].Lost != "", "%+v", db.Slots())
					require.NoError(t, db.DropSlot("index"))
				}
				require.NoError(t, db.Close())
				s = verify(dir, survey.Options{})
				require.Empty(t, s.Damage, what)
				require.Empty(t, s.Notes, what)
			}
		}
	}
}

// Values in blob files that only a slot needs are read too. Beside a writer there is no damage either.
func TestWhatIsKeptForSlotsHasValues(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	db, err := kv.Open(dir, &kv.Options{SeparateFrom: 100, SeparateAtCommit: true})
	require.NoError(t, err)
	_, snap, err := db.CreateSlot(t.Context(), "index")
	require.NoError(t, err)
	require.NoError(t, snap.Close())
	require.NoError(t, db.Set([]byte("large"), make([]byte, 10_000), nil))
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Delete([]byte("large"), nil))
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	s, err := doctor.Verify(t.Context(), dir, survey.Options{BesideWriter: true})
	require.NoError(t, err)
	require.Empty(t, s.Damage)
	require.NoError(t, db.Close())
	for _, kind := range []manifest.FileKind{manifest.FileKept, manifest.FileBlob} {
		for _, name := range filesOf(t, dir, kind) {
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			if len(data) < 10_000 {
				continue
			}
			data[len(data)/2] ^= 1
			require.NoError(t, os.WriteFile(name, data, 0o600))
			s, err := doctor.Verify(t.Context(), dir, survey.Options{})
			require.NoError(t, err)
			require.Len(t, s.Damage, 1)
			require.Contains(t, s.Damage[0].What, "only slots need it")
			require.Equal(t, filepath.Base(name), s.Damage[0].File)
			return
		}
	}
	require.Fail(t, "no file has the value")
}
