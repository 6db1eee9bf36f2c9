package storecmd

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/internal/survey/shape"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// storeWith returns the directory of a store that was opened with options and has an entry.
func storeWith(t *testing.T, o *kv.Options) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	db, err := kv.Open(dir, o)
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("a"), []byte("1"), nil))
	require.NoError(t, db.Close())
	return dir
}

// openedStats is what stats --json says of options and damage.
type openedStats struct {
	Opened *shape.Opened
	Damage []survey.Damage
	Notes  []string
}

func statsOf(t *testing.T, dir string) (s openedStats) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(ok(t, "stats", dir, "--json")), &s))
	return s
}

func TestStatsShowTheOptions(t *testing.T) {
	dir := storeWith(t, nil)
	require.Regexp(t, `\nlast opened for writing by release \S+, format 1, with all defaults\n`, ok(t, "stats", dir))
	require.Empty(t, statsOf(t, dir).Opened.Options)

	dir = storeWith(t, &kv.Options{MemtableSize: 1 << 20, Merger: kv.NewMerger("mine", nil)})
	require.Regexp(t, `, format 1, with\n  MemtableSize = 1MiB\n  # Merger = mine: the application's own\n`,
		ok(t, "stats", dir))
	require.Equal(t, []string{"MemtableSize = 1MiB", "# Merger = mine: the application's own"},
		statsOf(t, dir).Opened.Options)

	name := filepath.Join(dir, "SIFTKV-OPTIONS")
	flip(t, name, 70)
	s := statsOf(t, dir)
	require.Nil(t, s.Opened)
	require.Empty(t, s.Damage)
	require.Len(t, s.Notes, 1)
	require.Contains(t, s.Notes[0], "what the store was last opened with is not known")
	require.Contains(t, ok(t, "verify", dir), "note: what the store was last opened with is not known")
	require.Equal(t, dir+": nothing is damaged, and nothing was done\n", ok(t, "repair", dir))
	require.NoError(t, os.Remove(name))
	require.Nil(t, statsOf(t, dir).Opened)
}

// What a store says of itself is printed, and does not speak to the terminal.
func TestStatsPrintOptionsPlainly(t *testing.T) {
	dir := storeWith(t, nil)
	hostile := manifest.StoredOptions{Format: 1, Release: "v1\x1b[2J",
		Text: "Filter = \x1b]0;title\a\nMerger = \"siftkv.append:\\n\"\n# Merger = \x9b\xff: the application's own\n"}
	require.NoError(t, manifest.SetOptions(vfs.OS, dir, hostile))
	text := ok(t, "stats", dir)
	require.Contains(t, text, `by release "v1\x1b[2J", format 1, with`+"\n"+`  "Filter = \x1b]0;title\a"`+"\n"+
		`  Merger = "siftkv.append:\n"`+"\n"+`  "# Merger = \x9b\xff: the application's own"`+"\n")
	require.Equal(t, hostile.Release, statsOf(t, dir).Opened.Release, "JSON has escapes of its own")
}

// A store that is in a directory is opened there and written to, whatever a file in it says; and no command skips
// what is damaged because a program once asked for that.
func TestCommandsWriteWhereTheStoreIs(t *testing.T) {
	for _, text := range []string{"InMemory = true\n", "ReadOnly = true\n", "RecoveryMode = SkipCorrupt\n"} {
		dir := storeWith(t, nil)
		hostile := manifest.StoredOptions{Format: 1, Release: "v1", Text: text + "# SeparateFrom = 4KiB\n"}
		require.NoError(t, manifest.SetOptions(vfs.OS, dir, hostile))
		ok(t, "put", dir, "b", "2")
		require.Equal(t, "2\n", ok(t, "get", dir, "b"), text)
		require.Empty(t, statsOf(t, dir).Opened.Options)
	}
}

// Options that this release does not take are an error that says where they are from, and what to do.
func TestCommandsNameTheFileOfWrongOptions(t *testing.T) {
	dir := storeWith(t, nil)
	wrong := manifest.StoredOptions{Format: 1, Release: "v1", Text: "MaxMemtables = 1\n"}
	require.NoError(t, manifest.SetOptions(vfs.OS, dir, wrong))
	status, _, printed := siftkv(t, "put", dir, "b", "2")
	require.NotZero(t, status)
	require.Contains(t, printed, "MaxMemtables")
	require.Contains(t, printed, filepath.Join(dir, "SIFTKV-OPTIONS"))
	require.NoError(t, os.Remove(filepath.Join(dir, "SIFTKV-OPTIONS")))
	ok(t, "put", dir, "b", "2")
}

// Commands that write open a store as its program does, and leave files as it does.
func TestCommandsWriteAsTheProgramDoes(t *testing.T) {
	dir := storeWith(t, &kv.Options{Compression: sstable.Zstd, MaxMemtables: 5, FileMode: 0o640})
	before := statsOf(t, dir).Opened
	ok(t, "put", dir, "b", "2")
	ok(t, "compact", dir)
	ok(t, "delete", dir, "b")
	out := filepath.Join(t.TempDir(), "copy")
	ok(t, "checkpoint", dir, out)
	require.Equal(t, before, statsOf(t, dir).Opened)
	require.Equal(t, before, statsOf(t, out).Opened)
	require.Contains(t, before.Options, "FileMode = 0640")
	requireGroupReads(t, dir)
	requireGroupReads(t, out)

	ok(t, "compact", dir, "--compression", "none", "--filter", "bloom:12")
	require.Equal(t, []string{"MaxMemtables = 5", "Compression = none", "Filter = bloom:12", "FileMode = 0640"},
		statsOf(t, dir).Opened.Options)

	newer := "# siftkv options=9 format=9 release=v9\n"
	newer += fmt.Sprintf("# crc=%08x\n", base.Checksum(0, 0, []byte(newer)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "SIFTKV-OPTIONS"), []byte(newer), 0o600))
	ok(t, "put", dir, "b", "3")
	require.Empty(t, statsOf(t, dir).Opened.Options)
}

// Commands separate values where the program does: not from the default on if the release that wrote
// the store last had none, and would refuse a store with blob files.
func TestCommandsSeparateValuesAsTheProgramDoes(t *testing.T) {
	for _, c := range []struct {
		o     *kv.Options
		text  string // in place of what the store says of its options
		blobs int
	}{
		{o: nil, blobs: 1},
		{o: &kv.Options{SeparateFrom: -1}, blobs: 0},
		{o: &kv.Options{SeparateFrom: 6 << 10}, blobs: 0},
		{text: "# BlockSize = 4KiB\n", blobs: 0},
		{text: "SeparateFrom = 0\n", blobs: 1},
		{text: "SeparateFrom = 5000\n", blobs: 1},
	} {
		dir := storeWith(t, c.o)
		if c.text != "" {
			older := manifest.StoredOptions{Format: 1, Release: "v1", Text: c.text}
			require.NoError(t, manifest.SetOptions(vfs.OS, dir, older))
		}
		for range 2 { // what a command writes down goes on meaning the same
			ok(t, "put", dir, "b", strings.Repeat("b", 5000))
			ok(t, "compact", dir)
			blobs, err := filepath.Glob(filepath.Join(dir, "*.blob"))
			require.NoError(t, err)
			require.Len(t, blobs, c.blobs, "%+v", c)
		}
	}
}

// A repaired store has the mode of the damaged one, in place and in another directory; its options stay in place.
func TestARepairKeepsTheMode(t *testing.T) {
	dir := storeWith(t, &kv.Options{FileMode: 0o640, Compression: sstable.NoCompression})
	ok(t, "compact", dir)
	before := statsOf(t, dir).Opened
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	require.Len(t, tables, 1)
	flip(t, tables[0], 2)
	out := filepath.Join(t.TempDir(), "out")
	for _, args := range [][]string{{"repair", dir, "--out", out}, {"repair", dir}} {
		status, _, stderr := siftkv(t, args...)
		require.Equal(t, statusDamage, status, stderr)
	}
	requireGroupReads(t, out)
	requireGroupReads(t, dir)
	require.Nil(t, statsOf(t, out).Opened)
	require.Equal(t, before, statsOf(t, dir).Opened)
}

// requireGroupReads checks that all files have the mode 0640, under a umask that leaves it, and directories 0750.
func requireGroupReads(t *testing.T, dir string) {
	t.Helper()
	if runtime.GOOS == "windows" { // it has no such modes
		return
	}
	err := filepath.Walk(dir, func(name string, info os.FileInfo, err error) error {
		require.NoError(t, err)
		want := os.FileMode(0o640)
		if info.IsDir() {
			want = 0o750
		}
		require.Equal(t, want, info.Mode().Perm(), name)
		return nil
	})
	require.NoError(t, err)
}
