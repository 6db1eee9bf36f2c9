package storecmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// siftkv runs a command line and returns its exit status and output.
func siftkv(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	p := &program{stdin: strings.NewReader("from\nstandard input"), stdout: &out, stderr: &err}
	status = p.run(t.Context(), append([]string{"siftkv"}, args...))
	return status, out.String(), err.String()
}

// ok is siftkv that has to succeed; it returns the output.
func ok(t *testing.T, args ...string) string {
	t.Helper()
	status, stdout, stderr := siftkv(t, args...)
	require.Zero(t, status, "%v: %s", args, stderr)
	require.Empty(t, stderr, args)
	return stdout
}

// goldenStore is a copy of the store in the kv package's test data, whose bytes never
// change: it may be read by name, and damaged.
func goldenStore(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../kv/testdata/store-v1")))
	return dir
}

func flip(t *testing.T, name string, at int) {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	data[at] ^= 1
	require.NoError(t, os.WriteFile(name, data, 0o600))
}

// Golden: every command that prints something of a store, in text and in JSON, on a
// whole store and on a damaged one.
func TestGoldenOutputs(t *testing.T) {
	whole, broken := goldenStore(t), goldenStore(t)
	flip(t, filepath.Join(broken, "000007.sst"), 40)
	flip(t, filepath.Join(broken, "000018.wal"), 60)
	var all strings.Builder
	for _, line := range []string{
		"get DIR rewritten", "get DIR nowhere", "get --key-format hex DIR 726577726974746574",
		"get DIR rewritten --json", "get DIR nowhere --json",
		"scan DIR --limit 4", "scan DIR --prefix cuckoo --reverse --keys-only", "scan DIR --count",
		"scan DIR --lower none/008 --upper none/010 --json",
		"scan DIR --key-format base64 --limit 2",
		"stats DIR", "stats DIR --json", "verify DIR", "verify DIR --json", "verify BROKEN", "verify BROKEN --json",
		"stats BROKEN",
		"explain DIR rewritten", "explain DIR none/005 --json",
		"dump-sstable DIR/000007.sst", "dump-sstable --no-entries --json DIR/000011.sst",
		"dump-sstable BROKEN/000007.sst",
		"dump-wal DIR/000018.wal", "dump-wal --json BROKEN/000018.wal", "dump-manifest DIR/MANIFEST-000016",
		"dump-manifest --json DIR/MANIFEST-000016",
		"repair DIR", "repair BROKEN --dry-run", "repair BROKEN --json", "verify BROKEN", "scan BROKEN --count",
	} {
		args := strings.Fields(strings.NewReplacer("DIR", whole, "BROKEN", broken).Replace(line))
		status, stdout, stderr := siftkv(t, args...)
		text := strings.NewReplacer(whole, "DIR", broken, "BROKEN").Replace(stdout + stderr)
		fmt.Fprintf(&all, "$ siftkv %s\n%s[%d]\n\n", line, text, status)
	}
	golden.File(t, "testdata/outputs.txt", all.String())
}

func TestPutGetDelete(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	status, _, stderr := siftkv(t, "put", dir, "a", "1")
	require.Equal(t, statusError, status, "a mistyped directory does not become a store")
	require.Contains(t, stderr, "there is no store")
	require.NoDirExists(t, dir)

	ok(t, "put", dir, "a", "1", "--create")
	ok(t, "put", dir, `"tab\tand\x00"`, "--from", "-")
	require.Equal(t, "\"from\\nstandard input\"\n", ok(t, "get", dir, `"tab\tand\x00"`))
	require.Equal(t, "from\nstandard input", ok(t, "get", dir, "--raw", `"tab\tand\x00"`))
	file := filepath.Join(t.TempDir(), "value")
	require.NoError(t, os.WriteFile(file, []byte{0xff, 0}, 0o600))
	ok(t, "put", dir, "b", "--from", file)
	require.Equal(t, `{"key":"b","value":{"base64":"/wA="}}`+"\n", ok(t, "get", dir, "b", "--json"))

	status, _, _ = siftkv(t, "delete", dir, "nowhere")
	require.Equal(t, statusNotFound, status)
	ok(t, "delete", dir, "a")
	status, stdout, stderr := siftkv(t, "get", dir, "a")
	require.Equal(t, statusNotFound, status)
	require.Empty(t, stdout)
	require.Equal(t, "siftkv: not found\n", stderr)
	require.JSONEq(t, `{"deleted":"b","to":"u"}`, ok(t, "delete", dir, "b", "--to", "u", "--json"))
	require.Equal(t, "0\n", ok(t, "scan", dir, "--count"))
	require.Contains(t, ok(t, "compact", dir), "0 files, 0 bytes; before")
}

func TestCheckpointAndCompact(t *testing.T) {
	dir, out := goldenStore(t), filepath.Join(t.TempDir(), "copy")
	ok(t, "checkpoint", dir, out)
	require.Equal(t, ok(t, "scan", dir), ok(t, "scan", out))
	ok(t, "verify", out)
	var answer map[string]int64
	require.NoError(t, json.Unmarshal([]byte(ok(t, "compact", out, "--json", "--filter", "bloom:12")), &answer))
	require.EqualValues(t, 1, answer["files"])
	require.Equal(t, ok(t, "scan", dir), ok(t, "scan", out))
	require.Contains(t, ok(t, "stats", out), "bloom×1")
}

func TestExitStatuses(t *testing.T) {
	dir := goldenStore(t)
	for name, c := range map[string]struct {
		status int
		args   []string
	}{
		"unknown command": {statusUsage, []string{"gte", dir, "a"}},
		"unknown flag":    {statusUsage, []string{"scan", dir, "--form", "x"}},
		"key format":      {statusUsage, []string{"get", dir, "xyz", "--key-format", "hex"}},
		"quoted key":      {statusUsage, []string{"get", dir, `"open`}},
		"no value":        {statusUsage, []string{"put", dir, "a"}},
		"two values":      {statusUsage, []string{"put", dir, "a", "b", "--from", "-"}},
		"range":           {statusUsage, []string{"delete", dir, "b", "--to", "a"}},
		"limit":           {statusUsage, []string{"scan", dir, "--limit", "-1"}},
		"filter":          {statusUsage, []string{"compact", dir, "--filter", "sieve:1"}},
		"too large":       {statusUsage, []string{"put", dir, strings.Repeat("k", 70_000), "v"}},
		"missing store":   {statusError, []string{"scan", filepath.Join(dir, "nowhere")}},
		"empty directory": {statusError, []string{"put", t.TempDir(), "a", "b"}},
		"missing file":    {statusError, []string{"dump-wal", filepath.Join(dir, "000001.wal")}},
		"verify nothing":  {statusError, []string{"verify", t.TempDir()}},
		"repair foreign":  {statusError, []string{"repair", ".."}},
		"out not empty":   {statusError, []string{"repair", dir, "--out", dir}},
		"not a table":     {statusDamage, []string{"dump-sstable", filepath.Join(dir, "CURRENT")}},
		"not found":       {statusNotFound, []string{"get", dir, "nowhere"}},
	} {
		status, stdout, stderr := siftkv(t, c.args...)
		require.Equal(t, c.status, status, "%s: %s", name, stderr)
		require.Empty(t, stdout, name)
		require.True(t, strings.HasPrefix(stderr, "siftkv: ") && strings.Count(stderr, "\n") == 1, "%s: %q", name,
			stderr)
	}
	for _, args := range [][]string{
		nil, {"help"}, {"--help"}, {"--version"}, {"-V"}, {"version"}, {"man"}, {"repair", "--help"},
		{"help", "repair"},
	} {
		status, stdout, _ := siftkv(t, args...)
		require.Zero(t, status)
		require.Contains(t, stdout, "siftkv")
	}
	status, help, _ := siftkv(t, "--help")
	require.Zero(t, status)
	require.Contains(t, help, "Exit status: 0 ok, 1 error, 2 usage, 3 key not found, 4 damage")
}

// A property that is added to files is added to the dump.
func TestEveryPropertyIsInJSON(t *testing.T) {
	var properties sstable.Properties
	v := reflect.ValueOf(&properties).Elem()
	exported := 0
	for i := range v.NumField() {
		f := v.Field(i)
		if !v.Type().Field(i).IsExported() {
			continue
		}
		exported++
		switch f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case reflect.Array:
			f.Index(0).SetUint(1)
		case reflect.Struct:
			f.Field(0).SetUint(1)
		default:
			f.SetUint(2)
		}
	}
	data, err := json.Marshal((&program{}).describeProperties(1, &properties))
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(data, &fields))
	require.Len(t, fields, exported+1, "all of them, and the id: %s", data)
}

func TestMistypedWordsNameTheRightOne(t *testing.T) {
	for word, args := range map[string][]string{
		`"verify"`: {"verfy", "."}, `"backup"`: {"bakcup", "."}, `"restore"`: {"restroe", "."},
		`"dump-sstable"`: {"dump-sst", "."},
		`"--reverse"`:    {"scan", ".", "--revrese"}, `"--json"`: {"stats", ".", "--jsno"},
	} {
		status, _, stderr := siftkv(t, args...)
		require.Equal(t, statusUsage, status)
		require.Contains(t, stderr, "did you mean "+word+"?; see siftkv --help")
	}
}

func TestALockedStoreSaysWho(t *testing.T) {
	dir := goldenStore(t)
	db, err := kv.Open(dir, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	for _, command := range []string{"repair", "compact"} {
		status, _, stderr := siftkv(t, command, dir)
		require.Equal(t, statusError, status)
		require.Contains(t, stderr, fmt.Sprintf("is locked by this process (%d)", os.Getpid()), command)
	}
}

// closedPipe is an output that nobody reads.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Err: syscall.EPIPE}
}

func TestAReaderThatLeavesIsNoError(t *testing.T) {
	var stderr bytes.Buffer
	p := &program{stdout: closedPipe{}, stderr: &stderr}
	require.Zero(t, p.run(t.Context(), []string{"siftkv", "scan", goldenStore(t)}))
	require.Empty(t, stderr.String())
}

func TestInterruptIsStatus130(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stderr bytes.Buffer
	p := &program{stdout: io.Discard, stderr: &stderr}
	require.Equal(t, statusInterrupted, p.run(ctx, []string{"siftkv", "verify", goldenStore(t)}))
	require.Equal(t, "siftkv: interrupted\n", stderr.String())
}
