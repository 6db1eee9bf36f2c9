package storecmd

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/cli/clitest"
	"github.com/siftkv/siftkv/internal/storecmd/followtest"
	"github.com/siftkv/siftkv/kv"
)

// TestMain is siftkv itself if a test has started it so.
func TestMain(m *testing.M) {
	clitest.Main(m, func() { followtest.Main(nil, func() { Main(testOpeners) }) })
}

var works = clitest.RunWell

// process runs siftkv as a process of its own.
func process(t *testing.T, args ...string) clitest.Result {
	t.Helper()
	return (&clitest.Process{Args: args}).Run(t)
}

// publicStore is a store that everybody may read, with values that fill blocks.
func publicStore(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(clitest.PublicDir(t), "store")
	db, err := kv.Open(dir, nil)
	require.NoError(t, err)
	for i := range 200 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "key/%03d", i), []byte(strings.Repeat("v", 100+i)), kv.NoSync))
	}
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Set([]byte("young"), []byte("in the log"), nil))
	require.NoError(t, db.Close())
	return dir
}

// nasty are rows of bytes that are not UTF-8, or that programs take for something else.
var nasty = []string{
	"\xff", "\xfe", "a\xffb", "\xc3(", "\xed\xa0\x80", "\xef\xbf\xbd", "\x01\x7f", "\\xff", "a,b", "%s", allBytes(),
}

func allBytes() string {
	var b []byte
	for c := 1; c < 256; c++ {
		b = append(b, byte(c))
	}
	return string(b)
}

func TestKeysAndValuesOfAnyBytes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	for i, key := range nasty {
		works(t, "put", dir, "--create", "--", key, nasty[len(nasty)-1-i])
	}
	require.Equal(t, fmt.Sprintf("%d\n", len(nasty)), works(t, "scan", dir, "--count"), "each is a key of its own")
	for i, key := range nasty {
		require.Equal(t, nasty[len(nasty)-1-i], works(t, "get", dir, "--raw", "--", key), "%q", key)
		text := strings.TrimSuffix(works(t, "scan", dir, "--keys-only", "--prefix="+key, "--limit", "1"), "\n")
		require.Equal(t, nasty[len(nasty)-1-i], works(t, "get", dir, "--raw", "--", text),
			"what is printed is read back: %s", text)
	}
	for i, key := range nasty {
		works(t, "delete", dir, "--", key)
		require.Equal(t, fmt.Sprintf("%d\n", len(nasty)-1-i), works(t, "scan", dir, "--count"))
	}
	r := process(t, "put", dir, "\"\xff\"", "v")
	require.Equal(t, statusUsage, r.Status, "a Go string is UTF-8")
}

func TestNamesOfAnyBytes(t *testing.T) {
	t.Parallel()
	const name = "\xff\xfe"
	parent := t.TempDir()
	dir := filepath.Join(parent, name)
	require.NoError(t, os.Mkdir(dir, 0o700))
	in := func(s string) string { return filepath.Join(dir, s+"\x80") }
	require.NoError(t, os.WriteFile(in("value"), []byte("from a file"), 0o600))
	works(t, "put", in("store"), "key", "--create", "--from", in("value"))
	require.Equal(t, "from a file\n", works(t, "get", in("store"), "key"))
	works(t, "backup", in("store"), in("full"), "--mark", in("mark"))
	works(t, "put", in("store"), "other", "2")
	works(t, "backup", in("store"), in("more"), "--since", in("mark"))
	works(t, "backup", "--verify", in("more"))
	works(t, "restore", in("restored"), in("full"), in("more"), "--verify")
	works(t, "checkpoint", in("store"), in("copy"))
	works(t, "repair", in("store"), "--out", in("repaired"))
	for _, s := range []string{"store", "restored", "copy", "repaired"} {
		require.Equal(t, "key\tfrom a file\nother\t2\n", works(t, "scan", in(s)), s)
		works(t, "verify", in(s))
		works(t, "stats", in(s))
	}
	require.Equal(t, []string{name}, clitest.Names(t, parent))
	require.ElementsMatch(t, []string{
		"store\x80", "value\x80", "full\x80", "mark\x80", "more\x80", "more\x80.mark", "restored\x80", "copy\x80",
		"repaired\x80",
	}, clitest.Names(t, dir))

	// JSON loses no byte of a name either.
	for _, args := range [][]string{
		{"stats", in("store")}, {"verify", in("store")}, {"repair", in("store"), "--dry-run"},
		{"checkpoint", in("store"), in("copy2")},
		{"backup", in("store"), in("full2")}, {"restore", in("restored2"), in("full2")},
	} {
		require.NotContains(t, works(t, append(args, "--json")...), "\ufffd", args)
	}
}

// jsonCommands are a command line per command, each of which prints JSON.
func jsonCommands(t *testing.T) map[string][]string {
	t.Helper()
	dir, work := publicStore(t), t.TempDir()
	in := func(s string) string { return filepath.Join(work, s) }
	works(t, "backup", dir, in("one.bak"))
	works(t, "checkpoint", dir, in("source"))
	works(t, "compact", in("source"))
	db, err := kv.Open(in("source"), nil)
	require.NoError(t, err)
	writeTrace(t, db, in("trace"), 1000, func(i int) string { return fmt.Sprintf("key/%03d", i) })
	require.NoError(t, db.Close())
	require.NoError(t, os.CopyFS(in("still"), os.DirFS(dir))) // no command opens it, so that its files keep their names
	one := func(pattern string) string {
		files, err := filepath.Glob(filepath.Join(in("still"), pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		return files[0]
	}
	return map[string][]string{
		"get": {"get", dir, "key/000"}, "scan": {"scan", dir}, "count": {"scan", dir, "--count"},
		"explain": {"explain", dir, "key/000"},
		"stats":   {"stats", dir}, "verify": {"verify", dir}, "repair": {"repair", dir, "--dry-run"},
		"dump-sstable": {"dump-sstable", one("*.sst")}, "dump-wal": {"dump-wal", one("*.wal")},
		"dump-manifest": {"dump-manifest", one("MANIFEST-*")},
		"put":           {"put", in("source"), "k", "v"}, "delete": {"delete", in("source"), "key/001"},
		"delete range": {"delete", in("source"), "key/002", "--to", "key/004"},
		"advise":       {"advise", in("source"), in("trace")},
		"apply":        {"apply", in("source"), "--options", "Filter = none"},
		"compact":      {"compact", in("source")}, "checkpoint": {"checkpoint", dir, in("copy")},
		"backup":        {"backup", dir, in("two.bak")},
		"backup verify": {"backup", "--verify", in("one.bak")},
		"restore":       {"restore", in("restored"), in("one.bak"), "--verify"},
	}
}

// Readers of JSON compute in floating point: an integer beyond 2^53 would be another one.
func TestJSONHasOneNamingAndNoNumberThatIsRounded(t *testing.T) {
	t.Parallel()
	for _, args := range jsonCommands(t) {
		clitest.RequireJSON(t, works(t, append(args, "--json")...))
	}
}

func TestErrorsAreJSONToo(t *testing.T) {
	t.Parallel()
	dir := publicStore(t)
	missing := filepath.Join(t.TempDir(), "missing")
	for name, c := range map[string]struct {
		status int
		args   []string
	}{
		"not found":        {statusNotFound, []string{"get", dir, "nowhere"}},
		"nothing deleted":  {statusNotFound, []string{"delete", dir, "nowhere"}},
		"no store":         {statusError, []string{"scan", missing}},
		"unknown flag":     {statusUsage, []string{"scan", dir, "--form", "x"}},
		"unknown command":  {statusUsage, []string{"gte", dir, "x"}},
		"wrong range":      {statusUsage, []string{"compact", dir, "--lower", "z", "--upper", "a"}},
		"damage":           {statusDamage, []string{"dump-sstable", filepath.Join(dir, "CURRENT")}},
		"restore, no file": {statusError, []string{"restore", filepath.Join(t.TempDir(), "new"), missing}},
	} {
		r := process(t, append(c.args, "--json")...)
		require.Equal(t, c.status, r.Status, name)
		require.Empty(t, r.Stdout, name)
		var f failure
		d := json.NewDecoder(strings.NewReader(r.Stderr))
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(&f), "%s: %q", name, r.Stderr)
		require.False(t, d.More(), "%s: %q", name, r.Stderr)
		require.Equal(t, c.status, f.Status, name)
		require.NotEmpty(t, f.Error, name)
	}
}

// A full disk is one error, said once, and harms nothing that was there.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	c := newChain(t)
	before := works(t, "scan", c.store)
	value := filepath.Join(c.dir, "value")
	require.NoError(t, os.WriteFile(value, []byte(strings.Repeat("x", 200_000)), 0o600))
	old := read(t, c.inc2)
	for name, args := range map[string][]string{
		"put":           {"put", c.store, "key", "--from", value},
		"compact":       {"compact", c.store, "--filter", "bloom:12"},
		"backup":        {"backup", c.store, filepath.Join(c.dir, "new.bak")},
		"backup again":  {"backup", c.store, c.inc2, "--force"},
		"restore":       {"restore", filepath.Join(c.dir, "restored"), c.full},
		"repair beside": {"repair", c.store, "--out", filepath.Join(c.dir, "repaired")},
	} {
		r := (&clitest.Process{Args: args, Full: true, FileSize: 100}).Run(t)
		require.Equal(t, statusError, r.Status, "%s: %s", name, r.Stderr)
		require.Equal(t, 1, strings.Count(r.Stderr, "\n"), "%s: %s", name, r.Stderr)
		require.Contains(t, r.Stderr, "file too large", name)
		require.LessOrEqual(t, strings.Count(r.Stderr, "file too large"), 1, "%s says it once: %s", name, r.Stderr)
	}
	require.Equal(t, old, read(t, c.inc2))
	require.Equal(t, before, works(t, "scan", c.store))
	works(t, "put", c.store, "key", "there is room again")

	// Of a mark that finds no room, the old one stays.
	mark := c.full + markSuffix
	was := read(t, mark)
	r := (&clitest.Process{Args: []string{"backup", "--verify", c.inc2, "--mark", mark}, Full: true,
		FileSize: 10}).Run(t)
	require.Equal(t, statusError, r.Status, r.Stderr)
	require.Equal(t, was, read(t, mark))
	for _, name := range clitest.Names(t, c.dir) {
		require.NotContains(t, name, ".tmp")
	}
}

func TestAFullStandardOutputIsAnError(t *testing.T) {
	t.Parallel()
	commands := jsonCommands(t)
	for name, args := range commands {
		r := (&clitest.Process{Args: append(args, "--json"), Stdout: clitest.FullOutput(t)}).Run(t)
		require.Equal(t, statusError, r.Status, "%s: %s", name, r.Stderr)
		require.Contains(t, r.Stderr, "no space left on device", name)
	}
	for _, args := range [][]string{{"--help"}, {"--version"}, {"get", "--help"}, commands["scan"], commands["stats"],
		{"backup", commands["scan"][1], "-"}} {
		r := (&clitest.Process{Args: args, Stdout: clitest.FullOutput(t)}).Run(t)
		require.Equal(t, statusError, r.Status, "%v: %s", args, r.Stderr)
		require.Contains(t, r.Stderr, "no space left on device", args)
	}
	dir := goldenStore(t)
	flip(t, filepath.Join(dir, "000007.sst"), 40)
	r := (&clitest.Process{Args: []string{"repair", dir, "--dry-run"}, Stdout: clitest.FullOutput(t)}).Run(t)
	require.Equal(t, statusDamage, r.Status)
	require.Contains(t, r.Stderr, "no space left on device", "nobody has read what was lost")
}

func TestAReaderThatLeavesChangesNoVerdict(t *testing.T) {
	t.Parallel()
	for name, args := range jsonCommands(t) {
		r := (&clitest.Process{Args: args, Stdout: clitest.ClosedPipe(t)}).Run(t)
		require.Zero(t, r.Status, "%s: %s", name, r.Stderr)
		require.Empty(t, r.Stderr, name)
	}
	dir := goldenStore(t)
	flip(t, filepath.Join(dir, "000007.sst"), 40)
	for _, command := range [][]string{{"verify", dir}, {"repair", dir, "--dry-run"}} {
		r := (&clitest.Process{Args: command, Stdout: clitest.ClosedPipe(t)}).Run(t)
		require.Equal(t, statusDamage, r.Status, "%v: %s", command, r.Stderr)
	}
	r := (&clitest.Process{Args: []string{"backup", dir, "-"}, Stdout: clitest.ClosedPipe(t)}).Run(t)
	require.Equal(t, statusError, r.Status, "half a backup is none")
}

// The outputs of a backup keep their kind.
func TestBackupsToDevicesPipesAndLinks(t *testing.T) {
	t.Parallel()
	store, dir := publicStore(t), t.TempDir()
	in := func(s string) string { return filepath.Join(dir, s) }
	full := clitest.FullDevice(t)
	for _, args := range [][]string{{"backup", store, full}, {"backup", store, in("b0"), "--mark", full}} {
		r := process(t, args...)
		require.Equal(t, statusError, r.Status, r.Stderr)
		require.Contains(t, r.Stderr, "no space left on device")
		clitest.RequireType(t, full, fs.ModeDevice|fs.ModeCharDevice)
	}
	require.NoError(t, os.Remove(in("b0")))

	elsewhere := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(elsewhere, "b"), in("b")))
	require.NoError(t, os.Symlink(filepath.Join(elsewhere, "m"), in("m")))
	works(t, "backup", store, in("b"), "--mark", in("m"))
	works(t, "backup", store, in("b"), "--mark", in("m"), "--force")
	require.ElementsMatch(t, []string{"b", "m"}, clitest.Names(t, elsewhere))
	works(t, "backup", "--verify", in("b"))
	clitest.RequireType(t, in("b"), fs.ModeSymlink)
	clitest.RequireType(t, in("m"), fs.ModeSymlink)

	clitest.NamedPipe(t, in("p"))
	read := make(chan []byte)
	go func() {
		data, _ := os.ReadFile(in("p"))
		read <- data
	}()
	r := process(t, "backup", store, in("p"))
	require.Zero(t, r.Status, r.Stderr)
	require.NoError(t, os.WriteFile(in("from pipe"), <-read, 0o600))
	works(t, "backup", "--verify", in("from pipe"))
	clitest.RequireType(t, in("p"), fs.ModeNamedPipe)
	require.ElementsMatch(t, []string{"b", "m", "p", "from pipe"}, clitest.Names(t, dir))

	r = process(t, "backup", store, in("b2"), "--since", "/dev/zero")
	require.Equal(t, statusUsage, r.Status, "a file without an end is no mark: %s", r.Stderr)
}

// A command that waits for its input ends with a signal.
func TestSignalsEndWhatWaits(t *testing.T) {
	t.Parallel()
	store := publicStore(t)
	large := filepath.Join(t.TempDir(), "large")
	noise := make([]byte, 400_000)
	_, err := rand.NewChaCha8([32]byte{}).Read(noise)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(large, noise, 0o600))
	works(t, "put", store, "large", "--from", large)
	stream := (&clitest.Process{Args: []string{"backup", store, "-"}}).Run(t).Stdout
	begun := stream[:len(stream)-1000]
	for name, args := range map[string][]string{
		"put":     {"put", store, "waiting", "--from", "-"},
		"verify":  {"backup", "--verify", "-"},
		"restore": {"restore", filepath.Join(t.TempDir(), "new"), "-"},
	} {
		for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
			r, w, err := os.Pipe()
			require.NoError(t, err)
			var stderr strings.Builder
			cmd := (&clitest.Process{Args: args, Stdin: r, Stderr: &stderr}).Command(t)
			require.NoError(t, cmd.Start())
			require.NoError(t, r.Close())
			_, err = io.WriteString(w, begun) // more than a pipe holds: once it is written, it is being read
			require.NoError(t, err, name)
			require.NoError(t, cmd.Process.Signal(signal))
			_ = cmd.Wait() // the status says it
			require.Equal(t, statusInterrupted, cmd.ProcessState.ExitCode(), "%s: %s", name, stderr.String())
			require.Equal(t, "siftkv: interrupted\n", stderr.String())
			require.NoError(t, w.Close())
		}
	}
	require.Equal(t, statusNotFound, process(t, "get", store, "waiting").Status)
}

// What somebody else has closed is an error, and no damage.
func TestStoresOfAnotherUser(t *testing.T) {
	t.Parallel()
	store := publicStore(t)
	file := filepath.Join(clitest.PublicDir(t), "closed")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0))
	require.NoError(t, os.Chmod(store, 0))                           //nolint:gosec // on purpose
	t.Cleanup(func() { require.NoError(t, os.Chmod(store, 0o700)) }) //nolint:gosec // a directory
	for _, args := range [][]string{
		{"get", store, "k"}, {"scan", store}, {"stats", store}, {"verify", store}, {"repair", store},
		{"repair", store, "--dry-run"}, {"explain", store, "k"},
		{"put", store, "k", "v"}, {"delete", store, "k"}, {"compact", store}, {"backup", store, "-"},
		{"checkpoint", store, filepath.Join(os.TempDir(), "never")},
		{"dump-sstable", file}, {"dump-blob", file}, {"dump-wal", file}, {"dump-manifest", file},
		{"backup", "--verify", file},
		{"put", store, "k", "--from", file},
	} {
		r := (&clitest.Process{Args: args, Nobody: true}).Run(t)
		require.Equal(t, statusError, r.Status, "%v: %s", args, r.Stderr)
		require.Contains(t, r.Stderr, "permission denied", args)
		require.Empty(t, r.Stdout, args)
		require.Equal(t, 1, strings.Count(r.Stderr, "\n"), "%v: %s", args, r.Stderr)
	}
}

// A directory may take files and not be read.
func TestABackupToADropBox(t *testing.T) {
	t.Parallel()
	store, dir := publicStore(t), filepath.Join(clitest.PublicDir(t), "box")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, filepath.WalkDir(store, func(path string, _ os.DirEntry, err error) error {
		if err != nil || os.Geteuid() != 0 {
			return err
		}
		return os.Chown(path, clitest.NobodyID, clitest.NobodyID)
	}))
	require.NoError(t, os.Chmod(dir, 0o333))                       //nolint:gosec // on purpose
	t.Cleanup(func() { require.NoError(t, os.Chmod(dir, 0o700)) }) //nolint:gosec // a directory
	r := (&clitest.Process{Args: []string{"backup", store, filepath.Join(dir, "b")}, Nobody: true}).Run(t)
	require.Zero(t, r.Status, r.Stderr)
	require.FileExists(t, filepath.Join(dir, "b"))
	require.FileExists(t, filepath.Join(dir, "b.mark"))
}

func TestProcessStatuses(t *testing.T) {
	t.Parallel()
	dir, store := t.TempDir(), publicStore(t)
	text, missing := filepath.Join(dir, "text"), filepath.Join(dir, "missing")
	require.NoError(t, os.WriteFile(text, []byte("hello\n"), 0o600))
	cases := map[string]struct {
		status int
		args   []string
	}{
		"found":               {statusOK, []string{"get", store, "young"}},
		"help":                {statusOK, []string{"--help"}},
		"not found":           {statusNotFound, []string{"get", store, "nowhere"}},
		"range deleted":       {statusOK, []string{"delete", store, "x", "--to", "y"}},
		"mark is text":        {statusUsage, []string{"backup", store, filepath.Join(dir, "b"), "--mark", text}},
		"mark is a directory": {statusUsage, []string{"backup", store, filepath.Join(dir, "b"), "--mark", dir}},
		"mark without a home": {statusUsage,
			[]string{"backup", store, filepath.Join(dir, "b"), "--mark", filepath.Join(missing, "m")}},
		"mark of verify":      {statusUsage, []string{"backup", "--verify", text, "--mark", text}},
		"since text":          {statusUsage, []string{"backup", store, filepath.Join(dir, "b"), "--since", text}},
		"since a directory":   {statusUsage, []string{"backup", store, filepath.Join(dir, "b"), "--since", dir}},
		"backup to directory": {statusUsage, []string{"backup", store, dir}},
		"backup to nowhere":   {statusUsage, []string{"backup", store, filepath.Join(missing, "b")}},
		"verify directory":    {statusUsage, []string{"backup", "--verify", dir}},
		"restore directory":   {statusUsage, []string{"restore", filepath.Join(dir, "new"), dir}},
		"restore to a file":   {statusUsage, []string{"restore", text, text}},
		"ingest directory":    {statusUsage, []string{"ingest", store, dir}},
		"value, directory":    {statusUsage, []string{"put", store, "k", "--from", dir}},
		"repair to a file":    {statusUsage, []string{"repair", store, "--out", text}},
		"copy to a file":      {statusUsage, []string{"checkpoint", store, text}},
		"compact backwards":   {statusUsage, []string{"compact", store, "--lower", "z", "--upper", "a"}},
		"scan backwards":      {statusUsage, []string{"scan", store, "--lower", "z", "--upper", "a"}},
		"hex backwards": {statusUsage,
			[]string{"scan", store, "--key-format", "hex", "--lower", "ff", "--upper", "fe"}},
		"compact one key": {statusOK, []string{"compact", store, "--lower", "a", "--upper", "a"}},
		"value missing":   {statusError, []string{"put", store, "k", "--from", missing}},
		"backup is text":  {statusDamage, []string{"backup", "--verify", text}},
	}
	for _, command := range []string{"get", "put", "delete", "scan", "explain", "stats", "verify", "repair",
		"compact"} {
		var more []string
		switch command {
		case "get", "delete", "explain":
			more = []string{"k"}
		case "put":
			more = []string{"k", "v"}
		}
		cases[command+" in a file"] = struct {
			status int
			args   []string
		}{statusUsage, slices.Concat([]string{command, text}, more)}
		cases[command+" of nothing"] = struct {
			status int
			args   []string
		}{statusError, slices.Concat([]string{command, missing}, more)}
	}
	for _, command := range []string{"dump-sstable", "dump-blob", "dump-wal", "dump-manifest"} {
		cases[command+" of a directory"] = struct {
			status int
			args   []string
		}{statusUsage, []string{command, dir}}
	}
	for name, c := range cases {
		r := process(t, c.args...)
		require.Equal(t, c.status, r.Status, "%s: %s", name, r.Stderr)
		if c.status != statusOK {
			require.Empty(t, r.Stdout, name)
			require.True(t, strings.HasPrefix(r.Stderr, "siftkv: ") && strings.Count(r.Stderr, "\n") == 1, "%s: %q",
				name, r.Stderr)
		}
		if c.status == statusUsage || c.status == statusError {
			require.NotContains(t, r.Stderr, "corruption", name)
		}
	}
	require.Equal(t, []string{"text"}, clitest.Names(t, dir))
}
