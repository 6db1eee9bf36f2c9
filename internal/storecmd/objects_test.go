package storecmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/cli/clitest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// testOpeners has a client that says more than it should.
var testOpeners = Openers{
	"stalling": openStalling,
	"test": func(_ context.Context, url string) (objstore.Store, error) {
		return nil, errors.New("no server at " + url)
	},
}

// objectsStore makes a store in a directory that is an object store: files of several levels, and a log. It
// returns the URL.
func objectsStore(t *testing.T) string {
	t.Helper()
	url := "dir://" + filepath.Join(t.TempDir(), "objects")
	db := openURL(t, url)
	for i := range 2000 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "key/%04d", i), fmt.Appendf(nil, "%0100d", i), kv.Async))
		if i%500 == 0 {
			require.NoError(t, db.Flush(t.Context()))
		}
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.NoError(t, db.Set([]byte("young"), []byte("in a file"), nil))
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Set([]byte("younger"), []byte("in the log"), nil))
	require.NoError(t, db.Close())
	return url
}

// openURL opens the store at dir://.
func openURL(t *testing.T, url string) *kv.DB {
	t.Helper()
	s, err := objstore.OpenDir(strings.TrimPrefix(url, "dir://"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	db, err := kv.Open("", &kv.Options{TargetFileSize: 64 << 10, Objects: &objects.Config{Store: s}})
	require.NoError(t, err)
	return db
}

// Commands that read see what was written, leave its writer alone, and change nothing.
func TestReadsOfAnObjectStore(t *testing.T) {
	t.Parallel()
	url := objectsStore(t)
	db := openURL(t, url)
	require.NoError(t, db.Set([]byte("youngest"), []byte("now"), nil))
	dir := strings.TrimPrefix(url, "dir://")
	before := filesUnder(t, dir)
	require.Equal(t, "in the log\n", works(t, "get", url, "younger"))
	require.Equal(t, "now\n", works(t, "get", url, "youngest"))
	require.Equal(t, statusNotFound, process(t, "get", url, "nowhere").Status)
	require.Equal(t, "2003\n", works(t, "scan", url, "--count"))
	require.Equal(t, "key/1999\n",
		works(t, "scan", url, "--prefix", "key/", "--reverse", "--limit", "1", "--keys-only"))
	require.Contains(t, works(t, "explain", url, "key/0007"), "key/0007")
	require.Contains(t, works(t, "stats", url), url+": store ")
	stats := clitest.RequireJSON(t, works(t, "stats", url, "--json"))[0]
	require.Equal(t, url, stats["dir"])
	require.Empty(t, stats["damage"])
	require.Contains(t, works(t, "verify", url), "  ok\n")
	require.Contains(t, works(t, "repair", url, "--dry-run"), "nothing")
	var table, log, manifest string
	for line := range strings.SplitSeq(works(t, "verify", url), "\n") {
		for f := range strings.FieldsSeq(line) {
			switch {
			case strings.HasSuffix(f, ".sst"):
				table = f
			case strings.HasSuffix(f, ".wal"):
				log = f
			case strings.HasPrefix(f, "MANIFEST-"):
				manifest = f
			}
		}
	}
	require.Contains(t, works(t, "dump-sstable", url+"/"+table), "# id: ")
	require.Contains(t, works(t, "dump-wal", url+"/"+log), "youngest")
	require.Contains(t, works(t, "dump-manifest", url+"/"+manifest), "\tstore_id: ")
	r := process(t, "dump-wal", url+"/000999.wal")
	require.Equal(t, statusError, r.Status)
	require.Contains(t, r.Stderr, "000999.wal")
	require.Equal(t, statusUsage, process(t, "dump-wal", url).Status)
	backup := filepath.Join(t.TempDir(), "backup")
	require.Contains(t, works(t, "backup", url, backup), "full backup")
	works(t, "backup", "--verify", backup)
	require.Equal(t, before, filesUnder(t, dir), "nothing was written")
	require.NoError(t, db.Set([]byte("the writer"), []byte("goes on"), nil))
	require.NoError(t, db.Close())

	restored := "dir://" + filepath.Join(t.TempDir(), "restored")
	works(t, "restore", restored, backup, "--verify")
	require.Equal(t, "2003\n", works(t, "scan", restored, "--count"))
	require.Contains(t, works(t, "restore", restored, backup), "restored")
	works(t, "put", restored, "own", "way")
	r = process(t, "restore", restored, backup)
	require.Equal(t, statusError, r.Status)
	require.Contains(t, r.Stderr, "holds a store that is no restored backup")
}

func TestIncrementsIntoAnObjectStore(t *testing.T) {
	t.Parallel()
	c := newChain(t)
	url := "dir://" + filepath.Join(t.TempDir(), "objects")
	cut := filepath.Join(t.TempDir(), "cut")
	require.NoError(t, os.WriteFile(cut, read(t, c.full)[:len(read(t, c.full))/2], 0o600))
	r := process(t, "restore", url, cut)
	require.Equal(t, statusError, r.Status)
	require.Contains(t, r.Stdout, "unfinished, at offset 0; run the command again")
	require.Contains(t, process(t, "scan", url).Stderr, "there is no store")
	for i, args := range [][]string{{c.full}, {c.full, c.inc1}, {c.full, c.inc1, c.inc2}, {c.inc2}} {
		works(t, append([]string{"restore", url}, args...)...)
		require.Equal(t, c.contents[min(i, 2)], works(t, "scan", url))
	}
	require.Contains(t, process(t, "restore", url, c.full).Stderr, "does not go on from there")
	works(t, "verify", url)
}

// Commands that write take the store over.
func TestWritesToAnObjectStore(t *testing.T) {
	t.Parallel()
	url := "dir://" + filepath.Join(t.TempDir(), "objects")
	for _, args := range [][]string{{"put", url, "a", "1"}, {"delete", url, "a"}, {"compact", url}, {"get", url, "a"},
		{"scan", url}, {"stats", url}, {"verify", url}, {"backup", url, filepath.Join(t.TempDir(), "x")},
		{"repair", url, "--dry-run"}, {"copy", url, t.TempDir()}} {
		r := process(t, args...)
		require.Equal(t, statusError, r.Status, args)
		require.Contains(t, r.Stderr, "there is no store", args)
		require.NoDirExists(t, strings.TrimPrefix(url, "dir://"), args)
	}
	works(t, "put", url, "a", "1", "--create")
	db := openURL(t, url)
	works(t, "put", url, "b", "2")
	require.ErrorIs(t, db.Set([]byte("late"), nil, nil), objects.ErrFenced)
	require.ErrorIs(t, db.Close(), objects.ErrFenced)
	works(t, "put", url, "c", "3")
	works(t, "delete", url, "a")
	require.Contains(t, works(t, "compact", url), "1 file,")
	require.Equal(t, "b\t2\nc\t3\n", works(t, "scan", url))
	for _, command := range []string{"put", "delete", "compact", "ingest"} {
		require.Contains(t, works(t, command, "--help"), "takes the store over", command)
	}
}

// What makes no sense there says what does.
func TestWhatAnObjectStoreRefuses(t *testing.T) {
	t.Parallel()
	url, dir := objectsStore(t), filepath.Join(t.TempDir(), "dir")
	for _, c := range []struct{ args, want string }{
		{"checkpoint URL DIR", "siftkv copy"}, {"checkpoint DIR URL", "siftkv copy"}, {"repair URL", "--out DIR"},
		{"repair DIR --out URL", "siftkv copy"}, {"backup DIR URL", "a backup goes to a file"},
		{"get s3://bucket/prefix key", "github.com/siftkv/siftkv/objstore/s3/cmd/siftkv"},
		{"copy DIR s3://bucket/prefix", "github.com/siftkv/siftkv/objstore/s3/cmd/siftkv"},
		{"get gs://bucket key", "gs:// is neither"}, {"get dir:// key", "followed by a path"},
		{"copy SAME SAME", "must go elsewhere"}, //nolint:dupword // on purpose
	} {
		args := strings.Fields(strings.NewReplacer("URL", url, "DIR", dir, "SAME", url).Replace(c.args))
		if c.args == "copy DIR s3://bucket/prefix" {
			works(t, "put", dir, "a", "1", "--create")
		}
		r := process(t, args...)
		require.Equal(t, statusUsage, r.Status, "%s: %s", c.args, r.Stderr)
		require.Contains(t, r.Stderr, c.want, c.args)
	}
	require.Equal(t, "2002\n", works(t, "scan", url, "--count"))
}

// A damaged object is found, and the rest is saved into a directory.
func TestADamagedObject(t *testing.T) {
	t.Parallel()
	url := objectsStore(t)
	dir := strings.TrimPrefix(url, "dir://")
	_, last, _ := strings.Cut(works(t, "verify", url), "L6 ")
	name, _, _ := strings.Cut(last, ".sst")
	tables, err := filepath.Glob(filepath.Join(dir, "sst", name+"*"))
	require.NoError(t, err)
	require.NotEmpty(t, tables)
	flip(t, tables[0], 100)
	r := process(t, "verify", url)
	require.Equal(t, statusDamage, r.Status)
	require.Contains(t, r.Stderr, "siftkv repair --out DIR")
	before := filesUnder(t, dir)
	require.Equal(t, statusDamage, process(t, "repair", url, "--dry-run").Status)
	r = process(t, "copy", url, filepath.Join(t.TempDir(), "copy"))
	require.Equal(t, statusDamage, r.Status)
	require.Contains(t, r.Stderr, "damaged file")
	out := filepath.Join(t.TempDir(), "out")
	require.Equal(t, statusDamage, process(t, "repair", url, "--out", out).Status)
	works(t, "verify", out)
	require.Equal(t, "in the log\n", works(t, "get", out, "younger"))
	require.Equal(t, before, filesUnder(t, dir))
}

// everythingSaid runs a command line, in its own process if child is set, and returns both of its outputs.
func everythingSaid(t *testing.T, child bool, args ...string) (status int, text string) {
	t.Helper()
	if child {
		r := process(t, args...)
		return r.Status, r.Stdout + r.Stderr
	}
	var out bytes.Buffer
	p := &program{stdin: strings.NewReader(""), stdout: &out, stderr: &out, openers: testOpeners}
	status = p.run(t.Context(), append([]string{"siftkv"}, args...))
	return status, out.String()
}

// Nothing that a URL may hold of credentials is printed, whatever goes wrong.
func TestNoCredentialsAreShown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	works(t, "put", dir, "a", "1", "--create")
	for _, url := range []string{
		"s3://user:HUSH@bucket/prefix?secret=HUSH", "gs://u:HUSH@bucket?x=HUSH",
		"test://u:HUSH@bucket/p?x=HUSH&y=HUSH",
		"test://bucket/a b?x=HUSH HUSH\"HUSH", "TEST://u:HU/HUSH@b",
	} {
		for _, line := range [][]string{
			{"get", url, "a"}, {"get", "a", "b", url}, {url}, {"get", "--" + url, "a"}, {"put", url, "a", "b"},
			{"scan", url, "--limit", url}, {"stats", url}, {"verify", url}, {"repair", url},
			{"repair", dir, "--out", url},
			{"repair", url, "--dry-run"}, {"copy", dir, url}, {"copy", url, dir}, {"checkpoint", dir, url},
			{"checkpoint", url, dir}, {"backup", url, "x"}, {"backup", dir, url}, {"backup", dir, "x", "--mark", url},
			{"backup", "--verify", url}, {"restore", url, url}, {"restore", dir + "2", url}, {"ingest", url, url},
			{"compact", url}, {"dump-wal", url + "/000001.wal"}, {"dump-sstable", url}, {"dump-manifest", url},
			{"explain", url, "a"}, {"put", dir, "x", "--from", url}, {"put", dir, "--help", url},
			{"slots", url}, {"create-slot", url, "s"}, {"drop-slot", url, "s"}, {"changes", url, "--slot", "s"},
			{"changes", dir, "--slot", url}, {"follow", dir, url}, {"follow", url, dir},
			{"follow", dir, dir, "--slot", url},
		} {
			for _, format := range [][]string{nil, {"--json"}} {
				// In a process of its own, what libraries print is seen too.
				child := scale.Long() || format == nil && strings.HasPrefix(url, "test:")
				_, text := everythingSaid(t, child, append(append([]string{}, line...), format...)...)
				require.NotContains(t, text, "HUSH", "%q", line)
			}
		}
	}
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, e := range entries {
		require.NotContains(t, e.Name(), "HUSH")
	}
}
