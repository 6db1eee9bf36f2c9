package storecmd

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/cli/clitest"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/scale"
)

// requireRecent checks the time of an item, and takes it off.
func requireRecent(t *testing.T, item map[string]any) map[string]any {
	t.Helper()
	at, err := time.Parse(time.RFC3339, fmt.Sprint(item["created"]))
	require.NoError(t, err)
	require.False(t, at.IsZero())
	delete(item, "created")
	return item
}

// fields returns the fields of each line of a table, without the line of names and without times.
func fields(t *testing.T, table string) (all [][]string) {
	t.Helper()
	for i, line := range strings.Split(strings.TrimSpace(table), "\n") {
		isTime := func(field string) bool { return strings.HasSuffix(field, "Z") }
		require.Equal(t, i > 0, slices.ContainsFunc(strings.Fields(line), isTime), line)
		if i > 0 {
			all = append(all, slices.DeleteFunc(strings.Fields(line), isTime))
		}
	}
	return all
}

// Every command that reads takes a checkpoint for what it was, whatever the branch does.
func TestCheckpointsInAnObjectStore(t *testing.T) {
	t.Parallel()
	url := objectsStore(t)
	want := works(t, "scan", url)
	db := openURL(t, url)
	require.Contains(t, works(t, "checkpoint", url, "before"), "before: checkpoint of "+url+": ")
	require.NoError(t, db.Set([]byte("after"), []byte("the checkpoint"), nil), "the writer was left alone")
	made := clitest.RequireJSON(t, works(t, "checkpoint", url, "later.1", "--json"))[0]
	require.Equal(t, "later.1", requireRecent(t, made)["checkpoint"])
	require.NoError(t, db.Set([]byte("youngest"), []byte("now"), nil))
	require.NoError(t, db.Close())
	works(t, "delete", url, "key/", "--to", "key0")
	works(t, "compact", url)

	before := url + "?checkpoint=before"
	require.Equal(t, want, works(t, "scan", before))
	require.Equal(t, "in the log\n", works(t, "get", before, "younger"))
	require.Equal(t, "2003\n", works(t, "scan", url+"?checkpoint=later.1", "--count"))
	require.Equal(t, "4\n", works(t, "scan", url, "--count"))
	require.Contains(t, works(t, "stats", before), before+": store ")
	require.Contains(t, works(t, "explain", before, "key/0007"), "key/0007")
	require.Contains(t, works(t, "repair", before, "--dry-run"), "nothing")
	verified := works(t, "verify", before)
	require.Contains(t, verified, "  ok\n")
	_, last, _ := strings.Cut(verified, "L6 ")
	name, _, _ := strings.Cut(last, " ")
	require.Contains(t, works(t, "dump-sstable", url+"/"+name+"?checkpoint=before"), "# id: ")
	require.Equal(t, statusError, process(t, "dump-sstable", url+"/"+name).Status, "it was compacted away")
	dir := filepath.Join(t.TempDir(), "copy")
	require.Contains(t, works(t, "copy", before, dir), "; verified: ")
	require.Equal(t, want, works(t, "scan", dir))
	backup := filepath.Join(t.TempDir(), "backup")
	works(t, "backup", before, backup)
	works(t, "restore", dir+"2", backup, "--verify")
	require.Equal(t, want, works(t, "scan", dir+"2"))

	tables := strings.Count(verified, ".sst")
	list := fields(t, works(t, "checkpoints", url))
	require.Len(t, list, 2)
	require.Equal(t, []string{"before", strconv.Itoa(tables)}, list[0][:2])
	require.Regexp(t, `^[1-9]\d+$`, list[0][2])
	require.Equal(t, "later.1", list[1][0])
	items := clitest.RequireJSON(t, works(t, "checkpoints", url, "--json"))
	require.Len(t, items, 2)
	item := requireRecent(t, items[1])
	require.Equal(t, made["bytes"], item["bytes"])
	require.Equal(t, false, item["unfinished"])
	require.Equal(t, json.Number(strconv.Itoa(tables)), items[0]["files"])

	works(t, "drop-checkpoint", url, "before")
	require.Len(t, fields(t, works(t, "checkpoints", url)), 1)
	r := process(t, "scan", before)
	require.Equal(t, statusError, r.Status)
	require.Contains(t, r.Stderr, `no checkpoint is called "before"`)
}

// A branch is a store like any other, and shares its files with its parent.
func TestBranchesOfAnObjectStore(t *testing.T) {
	t.Parallel()
	url := objectsStore(t)
	want := works(t, "scan", url)
	require.Empty(t, works(t, "branches", url))
	works(t, "checkpoint", url, "c")
	writer := openURL(t, url)
	require.Equal(t, "one: clone of "+url+"\n", works(t, "clone", url, "one"))
	require.Equal(t, "two: clone of checkpoint c of "+url+"\n", works(t, "clone", url, "two", "--checkpoint", "c"))
	one, two := url+"?branch=one", url+"?branch=two"
	works(t, "put", one, "zone", "way")
	works(t, "put", two, "a", "second", "--create")
	works(t, "delete", two, "younger")
	require.NoError(t, writer.Set([]byte("the parent"), []byte("was not fenced"), nil))
	require.NoError(t, writer.Close())
	require.Equal(t, want+"zone\tway\n", works(t, "scan", one))
	require.Equal(t, "2002\n", works(t, "scan", two, "--count"))
	require.Equal(t, "2003\n", works(t, "scan", url, "--count"))
	require.Equal(t, statusNotFound, process(t, "get", url, "zone").Status)

	require.Contains(t, works(t, "stats", one), one+": store ")
	require.Equal(t, one, clitest.RequireJSON(t, works(t, "stats", one, "--json"))[0]["dir"])
	require.Contains(t, works(t, "verify", one), "  ok\n")
	dir := filepath.Join(t.TempDir(), "copy")
	require.Contains(t, works(t, "copy", one, dir), "; verified: ")
	require.Equal(t, want+"zone\tway\n", works(t, "scan", dir))
	r := process(t, "copy", dir, two)
	require.Equal(t, statusError, r.Status)
	require.Contains(t, r.Stderr, "holds a store")

	works(t, "checkpoint", one, "of-one")
	require.Empty(t, works(t, "checkpoints", two))
	require.Equal(t, want+"zone\tway\n", works(t, "scan", one+"&checkpoint=of-one"))
	three := clitest.RequireJSON(t, works(t, "clone", one+"&checkpoint=of-one", "three", "--json"))[0]
	require.Equal(t, "of-one", three["checkpoint"])
	require.Equal(t, [][]string{{"one", "-", "-", "false"}, {"three", "one", "of-one", "false"},
		{"two", "-", "c", "false"}}, fields(t, works(t, "branches", url)))
	items := clitest.RequireJSON(t, works(t, "branches", url, "--json"))
	require.Equal(t, map[string]any{"branch": "three", "parent": "one", "checkpoint": "of-one", "unfinished": false},
		requireRecent(t, items[1]))

	r = process(t, "drop-branch", url, "one")
	require.Equal(t, statusError, r.Status)
	require.Contains(t, r.Stderr, `branch "three" needs files of "one"`)
	require.Contains(t, works(t, "compact", url+"?branch=three"), "files")
	works(t, "drop-branch", url, "three")
	works(t, "drop-branch", url, "one")
	require.Len(t, fields(t, works(t, "branches", url)), 1)
	require.Contains(t, process(t, "scan", one).Stderr, `no branch is called "one"`)
	require.Equal(t, "2002\n", works(t, "scan", two, "--count"))
	works(t, "verify", two)
	works(t, "verify", url)
	require.Contains(t, works(t, "drop-branch", "--help"), "asks nothing")
}

// Golden: what the commands for branches and checkpoints print, in text and in JSON, and their help.
func TestGoldenBranches(t *testing.T) {
	t.Parallel()
	url := "dir://" + filepath.Join(t.TempDir(), "objects")
	works(t, "put", url, "a", "1", "--create")
	sizes := regexp.MustCompile(`\d+( bytes)|("bytes":)\d+`)
	columns := regexp.MustCompile(`(?m)^(\w+ +TIME +\d+ +)\d+ +`)
	times := regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+Z`)
	var all strings.Builder
	for _, line := range []string{
		"checkpoint URL monday", "checkpoint URL tuesday --json", "checkpoints URL", "checkpoints URL --json",
		"clone URL trial", "clone URL old --checkpoint monday --json", "clone URL?branch=old&checkpoint=monday x",
		"clone URL?branch=old older", "branches URL", "branches URL --json", "put URL?checkpoint=monday a 1",
		"put URL?checkpoint=monday a 1 --json", "get URL?branch=old&checkpoint=x a", "drop-branch URL old",
		"drop-branch URL older", "drop-branch URL older --json", "drop-checkpoint URL tuesday --json",
		"drop-checkpoint URL tuesday", "checkpoints URL", "checkpoint --help", "checkpoints --help",
		"drop-checkpoint --help", "clone --help", "branches --help", "drop-branch --help",
		"gc URL", "gc URL --json", "gc DIR", "gc --help",
	} {
		status, stdout, stderr := siftkv(t, strings.Fields(strings.ReplaceAll(line, "URL", url))...)
		text := strings.ReplaceAll(stdout+stderr, url, "URL")
		text = times.ReplaceAllString(sizes.ReplaceAllString(text, "${2}N$1"), "TIME")
		text = columns.ReplaceAllString(text, "${1}N ")
		fmt.Fprintf(&all, "$ siftkv %s\n%s[%d]\n\n", line, text, status)
	}
	golden.File(t, "testdata/branches.txt", all.String())
}

// What is damaged of a branch is found there, and the rest of it is saved into a directory.
func TestADamagedBranch(t *testing.T) {
	t.Parallel()
	url := objectsStore(t)
	works(t, "clone", url, "b")
	branch := url + "?branch=b"
	works(t, "put", branch, "zone", "way")
	works(t, "put", branch, "zoo", "keeper")
	tables, err := filepath.Glob(filepath.Join(strings.TrimPrefix(url, "dir://"), "data", "b-*", "sst", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, tables)
	for _, table := range tables {
		flip(t, table, 10)
	}
	works(t, "verify", url)
	r := process(t, "verify", branch)
	require.Equal(t, statusDamage, r.Status)
	require.Contains(t, r.Stderr, "siftkv repair --out DIR")
	require.Equal(t, statusDamage, process(t, "repair", branch, "--dry-run").Status)
	require.Equal(t, statusUsage, process(t, "repair", branch).Status)
	out := filepath.Join(t.TempDir(), "out")
	r = process(t, "repair", branch, "--out", out)
	require.Equal(t, statusDamage, r.Status)
	require.Contains(t, r.Stdout, "damage: ")
	works(t, "verify", out)
	require.Equal(t, "2000\n", works(t, "scan", out, "--prefix", "key/", "--count"))
}

// A restore goes on into a branch of a store that was restored, as it does into the store.
func TestIncrementsIntoABranch(t *testing.T) {
	t.Parallel()
	c := newChain(t)
	url := "dir://" + filepath.Join(t.TempDir(), "objects")
	works(t, "restore", url, c.full)
	works(t, "clone", url, "b")
	works(t, "restore", url+"?branch=b", c.full, c.inc1, "--verify")
	require.Equal(t, c.contents[1], works(t, "scan", url+"?branch=b"))
	require.Equal(t, c.contents[0], works(t, "scan", url))
}

// What cannot be is refused before anything is done, and says what can.
func TestWhatBranchesAndCheckpointsRefuse(t *testing.T) {
	t.Parallel()
	url, dir := objectsStore(t), filepath.Join(t.TempDir(), "dir")
	works(t, "put", dir, "a", "1", "--create")
	works(t, "checkpoint", url, "c")
	works(t, "clone", url, "b")
	files := filesUnder(t, strings.TrimPrefix(url, "dir://"))
	const changes = "is a checkpoint, which does not change: make a branch of it with siftkv clone"
	for _, c := range []struct {
		status     int
		args, want string
	}{
		{statusUsage, "put URL?checkpoint=c a 1", changes}, {statusUsage, "put URL?checkpoint=c a 1 --create", changes},
		{statusUsage, "delete URL?checkpoint=c a", changes}, {statusUsage, "compact URL?checkpoint=c", changes},
		{statusUsage, "ingest URL?checkpoint=c x", changes}, {statusUsage, "copy DIR URL?checkpoint=c", changes},
		{statusUsage, "restore URL?checkpoint=c x", changes},
		{statusUsage, "checkpoint URL?checkpoint=c d", "wants a branch"},
		{statusUsage, "checkpoints URL?checkpoint=c", "wants a branch"},
		{statusUsage, "drop-checkpoint URL?checkpoint=c c", "wants a branch"},
		{statusUsage, "branches URL?branch=b", "for the whole store"},
		{statusUsage, "drop-branch URL?branch=b b", "for the whole store"},
		{statusUsage, "clone URL?checkpoint=c x --checkpoint c", "--checkpoint is given too"},
		{statusUsage, "clone URL a/b", "invalid name"}, {statusUsage, "checkpoint URL a/b", "siftkv copy"},
		{statusUsage, "drop-branch URL -- -x", "invalid name"},
		{statusUsage, "scan URL?branch=", "no name of a branch"}, {statusUsage, "scan URL?branch=a&branch=b", "twice"},
		{statusUsage, "scan URL?brnach=b", "branch=NAME and checkpoint=NAME"},
		{statusUsage, "scan test://b?checkpoint=ü", "no name of a checkpoint"},
		{statusUsage, "checkpoints DIR", "is a directory"}, {statusUsage, "clone DIR x", "is a directory"},
		{statusUsage, "branches DIR", "is a directory"}, {statusUsage, "drop-branch DIR x", "is a directory"},
		{statusUsage, "drop-checkpoint DIR x", "is a directory"},
		{statusError, "checkpoint URL c", `there is a checkpoint "c"`},
		{statusError, "clone URL b", `there is a branch "b"`},
		{statusError, "clone URL x --checkpoint nowhere", `no checkpoint is called "nowhere"`},
		{statusError, "drop-checkpoint URL nowhere", `no checkpoint is called "nowhere"`},
		{statusError, "drop-branch URL nowhere", `no branch is called "nowhere"`},
		{statusError, "scan URL?branch=nowhere", `no branch is called "nowhere"`},
		{statusError, "put URL?branch=nowhere a 1", `no branch is called "nowhere"`},
		{statusError, "put URL?branch=nowhere a 1 --create", `no branch is called "nowhere"`},
		{statusError, "stats URL?branch=b&checkpoint=nowhere", `no checkpoint is called "nowhere"`},
		{statusError, "checkpoints URL?branch=nowhere", `no branch is called "nowhere"`},
		{statusError, "checkpoints URL-nowhere", "there is no"}, {statusError, "branches URL-nowhere", "there is no"},
		{statusError, "put URL-nowhere?branch=b a 1 --create", "there is no"},
		{statusError, "branches dir://EMPTY", "there is no store"},
		{statusError, "checkpoints dir://EMPTY", "there is no store"},
		{statusError, "checkpoint dir://EMPTY x", "there is no store"},
		{statusError, "clone dir://EMPTY x", "there is no store"},
	} {
		args := strings.Fields(strings.NewReplacer("URL", url, "DIR", dir, "EMPTY", t.TempDir()).Replace(c.args))
		r := process(t, args...)
		require.Equal(t, c.status, r.Status, "%s: %s%s", c.args, r.Stdout, r.Stderr)
		require.Contains(t, r.Stderr, c.want, c.args)
	}
	require.Equal(t, files, filesUnder(t, strings.TrimPrefix(url, "dir://")))
	require.NoDirExists(t, strings.TrimPrefix(url, "dir://")+"-nowhere")
}

// A checkpoint that was dropped, and that a clone needs, stays listed as one that cannot be opened.
func TestADroppedCheckpointThatACloneNeeds(t *testing.T) {
	t.Parallel()
	url := objectsStore(t)
	works(t, "checkpoint", url, "c")
	works(t, "clone", url, "b", "--checkpoint", "c")
	works(t, "drop-checkpoint", url, "c")
	require.Equal(t, []string{"c", "0"}, fields(t, works(t, "checkpoints", url))[0][:2])
	require.Equal(t, "true", fields(t, works(t, "checkpoints", url))[0][3])
	item := requireRecent(t, clitest.RequireJSON(t, works(t, "checkpoints", url, "--json"))[0])
	require.Equal(t, true, item["unfinished"])
	require.Equal(t, statusError, process(t, "scan", url+"?checkpoint=c").Status)
	works(t, "drop-branch", url, "b")
	require.Empty(t, works(t, "checkpoints", url))
	require.Empty(t, works(t, "branches", url))
}

// A directory may be called what looks like parameters.
func TestDirectoriesThatLookLikeParameters(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"what?", "a?b", "a?branch=b/c", "a?branch=b/", "x#y?"} {
		url := "dir://" + t.TempDir() + "/" + name
		works(t, "put", url, "a", "1", "--create")
		require.DirExists(t, strings.TrimPrefix(url, "dir://"))
		works(t, "checkpoint", url, "c")
		require.Equal(t, "a\t1\n", works(t, "scan", url+"?checkpoint=c"))
		log := regexp.MustCompile(`[0-9]+\.(wal|sst)`).FindString(works(t, "verify", url))
		require.NotEmpty(t, log)
		require.NotEmpty(t, works(t, "dump-"+map[string]string{".wal": "wal", ".sst": "sstable"}[filepath.Ext(log)],
			strings.TrimSuffix(url, "/")+"/"+log))
	}
}

// Beside a branch nothing of a URL is printed either, and a name that is none is not repeated if it is a URL.
func TestNoCredentialsBesideABranchAreShown(t *testing.T) {
	t.Parallel()
	objects := "dir://" + filepath.Join(t.TempDir(), "objects")
	works(t, "put", objects, "a", "1", "--create")
	for _, url := range []string{
		"test://u:HUSH@b?branch=b&x=HUSH", "test://b?x=HUSH&checkpoint=c", "test://b?branch=b@HUSH",
		"test://b?branch=b HUSH", "test://b?branch=/HUSH&checkpoint=%HUSH", "test://b?branch=a&branch=HU/HUSH",
		"s3://b?branch=b&secret=HUSH", "s3://u:HUSH@b?branch=b#HUSH",
	} {
		for _, line := range [][]string{
			{"get", url, "a"}, {"put", url, "a", "1"}, {"dump-wal", strings.Replace(url, "?", "/000001.wal?", 1)},
			{"copy", url, objects}, {"checkpoint", url, "c"}, {"checkpoints", url}, {"drop-checkpoint", url, "c"},
			{"clone", url, "x"}, {"branches", url}, {"drop-branch", url, "b"}, {"checkpoint", objects, url},
			{"drop-checkpoint", objects, url}, {"clone", objects, url}, {"drop-branch", objects, url},
			{"clone", objects, "x", "--checkpoint", url}, {"clone", objects, "x", "--checkpoint", url, "--json"},
		} {
			status, text := everythingSaid(t, scale.Long() || strings.HasPrefix(url, "test://u"), line...)
			require.NotZero(t, status, "%q", line)
			require.NotContains(t, text, "HUSH", "%q", line)
		}
	}
	require.Empty(t, works(t, "checkpoints", objects)+works(t, "branches", objects))
}
