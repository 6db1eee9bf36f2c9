package storecmd

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/cli/clitest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// A scarceDisk is a directory in which the program runs out of room.
type scarceDisk struct {
	dir string
	// scarce runs the program with room for about so many KiB.
	scarce func(room int, args ...string) clitest.Result
	// free gives all room back.
	free func()
}

// limited is a directory where the size of files is limited.
func limited(t *testing.T) scarceDisk {
	return scarceDisk{dir: t.TempDir(), free: func() {}, scarce: func(room int, args ...string) clitest.Result {
		return (&clitest.Process{Args: args, Full: true, FileSize: room << 10}).Run(t)
	}}
}

// small is a file system of one MiB. It is false where none may be mounted.
func small(t *testing.T) (scarceDisk, bool) {
	dir := t.TempDir()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 ||
		exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", dir).Run() != nil {
		return scarceDisk{}, false
	}
	t.Cleanup(func() {
		require.NoError(t, exec.CommandContext(context.WithoutCancel(t.Context()), "umount", dir).Run())
	})
	ballast := filepath.Join(dir, "ballast")
	free := func() { require.NoError(t, os.RemoveAll(ballast)) }
	return scarceDisk{dir: dir, free: free, scarce: func(room int, args ...string) clitest.Result {
		free()
		f, err := os.Create(ballast)
		require.NoError(t, err)
		for size := int64(0); err == nil; size += 4 << 10 {
			if _, err = f.Write(make([]byte, 4<<10)); err != nil {
				require.NoError(t, f.Truncate(max(size-int64(room)<<10, 0)))
			}
		}
		require.NoError(t, f.Close())
		return process(t, args...)
	}}, true
}

// scarceDisks are the kinds that there are here: one everywhere.
func scarceDisks(t *testing.T) map[string]scarceDisk {
	disks := map[string]scarceDisk{"limited files": limited(t)}
	if disk, ok := small(t); ok {
		disks["a small file system"] = disk
	} else {
		t.Log("no file system may be mounted: the size of files is limited alone")
	}
	return disks
}

// fullStore writes a store of some tables and a log, 200 KB in all.
func fullStore(t *testing.T, dir string) {
	t.Helper()
	db, err := kv.Open(dir, &kv.Options{SeparateFrom: -1, Compression: sstable.NoCompression})
	require.NoError(t, err)
	for i := range 40 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "key%02d", i), make([]byte, 5000), nil))
		if i%10 == 9 && i < 39 {
			require.NoError(t, db.Flush(t.Context()))
		}
	}
	require.NoError(t, db.Close())
}

// A put for which there is no room is an error, and no damage: the store has what it
// had.
func TestAPutWithoutRoomDamagesNothing(t *testing.T) {
	for name, disk := range scarceDisks(t) {
		dir := filepath.Join(disk.dir, "store")
		ok(t, "put", dir, "a", "1", "--create")
		failed := 0
		for room := 0; room < 40; room += scale.Stride(12, 4) {
			what := fmt.Sprintf("%s, room for %d KiB", name, room)
			value := filepath.Join(t.TempDir(), "value")
			require.NoError(t, os.WriteFile(value, []byte(strings.Repeat("v", 60<<10)), 0o600))
			ok(t, "put", dir, "a", "1") // what the last one left behind is no room for this one
			r := disk.scarce(room, "put", dir, "b", "--from", value)
			require.Equal(t, statusError, r.Status, "%s: %s", what, r.Stderr)
			failed++
			ok(t, "verify", dir) // without room too
			disk.free()
			ok(t, "verify", dir)
			require.Contains(t, ok(t, "repair", dir), "nothing is damaged", what)
			require.Equal(t, "1\n", ok(t, "get", dir, "a"), what)
		}
		require.Positive(t, failed)
	}
}

// A repair into a directory for which there is no room leaves nothing there, and can be
// run again.
func TestARepairWithoutRoomCanBeRunAgain(t *testing.T) {
	for name, disk := range scarceDisks(t) {
		dir := filepath.Join(t.TempDir(), "store")
		fullStore(t, dir)
		tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
		require.NoError(t, err)
		flip(t, tables[0], 100) // a table that is written anew
		before := filesUnder(t, dir)
		want := ""
		full := 0
		for room := 0; want == ""; room += scale.Stride(14, 2) {
			out := filepath.Join(disk.dir, "new", "out")
			what := fmt.Sprintf("%s, room for %d KiB", name, room)
			r := disk.scarce(room, "repair", dir, "--out", out)
			if r.Status == statusDamage { // it had room, and has said what is lost
				want = r.Stdout
			} else {
				full++
				require.Equal(t, statusError, r.Status, "%s: %s%s", what, r.Stdout, r.Stderr)
				require.NoDirExists(t, filepath.Join(disk.dir, "new"), what)
			}
			disk.free()
			if want == "" {
				status, _, stderr := siftkv(t, "repair", dir, "--out", out)
				require.Equal(t, statusDamage, status, "%s: %s", what, stderr)
			}
			ok(t, "verify", out)
			require.Equal(t, before, filesUnder(t, dir), what)
			require.NoError(t, os.RemoveAll(filepath.Join(disk.dir, "new")))
		}
		require.Positive(t, full, name)
	}
}
