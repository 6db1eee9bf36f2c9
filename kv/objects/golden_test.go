package objects_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/remote/branch"
	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/sequence"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// goldenBucket is an object store with a store whose lists of files have version 1, a checkpoint of it, and a branch
// with a blob file, whose list has version 2. All of them have writes that are only in logs. Every later version opens
// it.
const goldenBucket = "testdata/bucket-v1"

// goldenSlots is an object store with a store whose lists of files have version 3: the slot "index" has a write that is
// in a copy of a log, and one that is in a log.
const goldenSlots = "testdata/bucket-v3"

var large = strings.Repeat("large ", 20)

// The contents of the golden bucket.
var (
	goldenCheckpoint = map[string]string{"flushed": "1", "logged": "2"}
	goldenMain       = map[string]string{"flushed": "1", "logged": "2", "later": "3"}
	goldenTrial      = map[string]string{"flushed": "1", "logged": "2", "large": large, "tried": "4"}
)

func writeGoldenBucket(t *testing.T) {
	t.Helper()
	main, trial := configsOf(t, goldenBucket)
	put := func(c *objects.Config, separate int, flushed, logged [2]string) {
		db, err := kv.Open("", &kv.Options{Objects: c, SeparateFrom: separate})
		require.NoError(t, err)
		if flushed[0] != "" {
			require.NoError(t, db.Set([]byte(flushed[0]), []byte(flushed[1]), kv.Sync))
			require.NoError(t, db.Flush(t.Context()))
		}
		require.NoError(t, db.Set([]byte(logged[0]), []byte(logged[1]), kv.Sync))
		require.NoError(t, db.Close())
	}
	put(main, -1, [2]string{"flushed", "1"}, [2]string{"logged", "2"})
	_, err := main.PinCheckpoint(t.Context(), "before")
	require.NoError(t, err)
	require.NoError(t, before(main).Clone(t.Context(), "trial"))
	put(trial, 50, [2]string{"large", large}, [2]string{"tried", "4"})
	put(main, -1, [2]string{}, [2]string{"later", "3"})
}

// configsOf returns the settings of the branches in a directory that is an object store.
func configsOf(t *testing.T, dir string) (main, trial *objects.Config) {
	t.Helper()
	bucket, err := objstore.OpenDir(dir)
	require.NoError(t, err)
	return &objects.Config{Store: bucket}, &objects.Config{Store: bucket, Branch: "trial"}
}

func before(main *objects.Config) *objects.Config {
	c := *main
	c.Checkpoint = "before"
	return &c
}

func copyGoldenBucket(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(goldenBucket)))
	return dir
}

func TestTheGoldenBucketOpens(t *testing.T) {
	if golden.Absent(goldenBucket) {
		writeGoldenBucket(t)
	}
	main, trial := configsOf(t, copyGoldenBucket(t))
	requireHas := func(want map[string]string, db *kv.DB) {
		t.Helper()
		got := map[string]string{}
		var failed error
		for k, v := range db.All(nil, &failed) {
			got[string(k)] = string(v)
		}
		require.NoError(t, failed)
		require.Equal(t, want, got)
	}
	states := []struct {
		config *objects.Config
		want   map[string]string
	}{{main, maps.Clone(goldenMain)}, {trial, maps.Clone(goldenTrial)}, {before(main), goldenCheckpoint}}
	for _, s := range states {
		view, err := kv.OpenReadOnly("", &kv.Options{Objects: s.config})
		require.NoError(t, err)
		requireHas(s.want, view)
		require.NoError(t, view.Close())
	}
	for _, s := range states[:2] {
		for range 2 {
			db, err := kv.Open("", &kv.Options{Objects: s.config})
			require.NoError(t, err)
			requireHas(s.want, db)
			require.NoError(t, db.Compact(t.Context(), nil, nil))
			requireHas(s.want, db)
			require.NoError(t, db.Set([]byte("new"), []byte("write"), kv.Sync))
			s.want["new"] = "write"
			require.NoError(t, db.Close())
		}
	}
	view, err := kv.OpenReadOnly("", &kv.Options{Objects: before(main)})
	require.NoError(t, err)
	requireHas(goldenCheckpoint, view)
	require.NoError(t, view.Close())
}

func writeGoldenSlots(t *testing.T) {
	t.Helper()
	main, _ := configsOf(t, goldenSlots)
	db, err := kv.Open("", &kv.Options{Objects: main, SeparateFrom: -1})
	require.NoError(t, err)
	_, snap, err := db.CreateSlot(t.Context(), "index")
	require.NoError(t, errors.Join(err, snap.Close(), db.Set([]byte("flushed"), []byte("1"), kv.Sync),
		db.Flush(t.Context()), db.Set([]byte("logged"), []byte("2"), kv.Sync), db.Close()))
}

func TestTheGoldenSlotsGoOn(t *testing.T) {
	if golden.Absent(goldenSlots) {
		writeGoldenSlots(t)
	}
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(goldenSlots)))
	main, _ := configsOf(t, dir)
	for range 2 {
		db, err := kv.Open("", &kv.Options{Objects: main})
		require.NoError(t, err)
		slot, err := db.OpenSlot("index")
		require.NoError(t, err)
		n := uint64(0)
		for c, err := range slot.Changes(t.Context()) {
			require.NoError(t, err)
			n++
			require.Equal(t, n, c.Last())
			b := db.NewBatch()
			require.NoError(t, c.Replay(b))
			require.Equal(t, 1, b.Len())
			if n == 2 {
				break
			}
		}
		require.NoError(t, errors.Join(slot.Close(), db.Close()))
	}
}

// Every version of entries, lists of files, branches and checkpoints is that of an object in the golden bucket.
func TestEveryVersionHasAGoldenBucket(t *testing.T) {
	there := map[string]bool{}
	saw := func(what string, version uint64) { there[fmt.Sprintf("%s of version %d", what, version)] = true }
	look := func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		version := uint64(binary.LittleEndian.Uint32(data[8:]))
		switch filepath.Base(filepath.Dir(path)) {
		case "entry":
			saw("an entry", version)
			if len(data) == sequence.FenceSize {
				return nil
			}
			slot, body := binary.LittleEndian.Uint64(data[32:]), data[sequence.HeaderSize:len(data)-4]
			b, err := filelist.DecodeBody(body, slot, path)
			require.NoError(t, err)
			if len(b.List) > 0 {
				saw("a list", uint64(b.List[0]))
			}
		case "branch":
			saw("a branch", uint64(data[sequence.HeaderSize]))
		default:
			if strings.HasPrefix(string(data), "SIFTCHK") {
				saw("a checkpoint", version)
			}
		}
		return nil
	}
	require.NoError(t, errors.Join(filepath.WalkDir(goldenBucket, look), filepath.WalkDir(goldenSlots, look)))
	lists := uint64(1) // the newest version
	for ; ; lists++ {
		if _, _, err := filelist.Decode([]byte{byte(lists + 1)}); errors.Is(err, kv.ErrNewerFormat) {
			break
		}
	}
	for what, newest := range map[string]uint64{"an entry": sequence.FormatVersion, "a list": lists,
		"a branch": branch.Version, "a checkpoint": branch.SnapshotVersion} {
		for version := range newest {
			require.Contains(t, there, fmt.Sprintf("%s of version %d", what, version+1))
		}
	}
	require.EqualValues(t, 3, lists)
}

// A newest entry of a later version is refused by name, and is no damage.
func TestAnEntryOfANewerFormatIsRefused(t *testing.T) {
	dir := copyGoldenBucket(t)
	entries, err := filepath.Glob(filepath.Join(dir, "entry", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	newest := slices.Min(entries) // see docs/format/object-storage.md
	data, err := os.ReadFile(newest)
	require.NoError(t, err)
	binary.LittleEndian.PutUint32(data[8:], 2)
	binary.LittleEndian.PutUint32(data[72:], base.Checksum(0, 0, data[:72]))
	require.NoError(t, os.WriteFile(newest, data, 0o600))
	main, _ := configsOf(t, dir)
	_, err = kv.OpenReadOnly("", &kv.Options{Objects: main})
	require.ErrorIs(t, err, kv.ErrNewerFormat)
	require.NotErrorIs(t, err, kv.ErrCorruption)
	_, err = kv.Open("", &kv.Options{Objects: main})
	require.ErrorIs(t, err, kv.ErrNewerFormat)
	require.NotErrorIs(t, err, kv.ErrCorruption)
}
