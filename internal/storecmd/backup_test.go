package storecmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// chain is a store, and a full backup of it with two increments.
type chain struct {
	dir, store       string
	full, inc1, inc2 string
	contents         [3]string // of the store at each backup
}

func newChain(t *testing.T) *chain {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	c := &chain{dir: dir, store: at("store"), full: at("full.bak"), inc1: at("inc1.bak"), inc2: at("inc2.bak")}
	since := []string{}
	for i, out := range []string{c.full, c.inc1, c.inc2} {
		db, err := kv.Open(c.store, nil)
		require.NoError(t, err)
		for n := range 200 {
			require.NoError(t, db.Set(fmt.Appendf(nil, "%d/%03d", i, n), bytes.Repeat([]byte{byte(n)}, 100), kv.NoSync))
		}
		require.NoError(t, db.Close())
		require.Contains(t, ok(t, append([]string{"backup", c.store, out}, since...)...),
			"mark for the next backup: --since "+out+".mark\n")
		since = []string{"--since", out + ".mark"}
		c.contents[i] = ok(t, "scan", c.store)
	}
	return c
}

// with runs a command line with an input and a context of its own.
func with(ctx context.Context, stdin io.Reader, args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	p := &program{stdin: stdin, stdout: &out, stderr: &err}
	status = p.run(ctx, append([]string{"siftkv"}, args...))
	return status, out.String(), err.String()
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return b
}

func TestBackupsAreRestoredInOrder(t *testing.T) {
	t.Parallel()
	c := newChain(t)
	dir := filepath.Join(c.dir, "restored")
	out := ok(t, "restore", dir, c.full, c.inc1, c.inc2, "--verify")
	require.Regexp(t, `(?s)^.*/full.bak: backup [0-9a-f]{16} restored: \d+ files, \d+ bytes\n.*inc1.bak: `+
		`.*inc2.bak: .*/restored: verified\n$`, out)
	require.Equal(t, c.contents[2], ok(t, "scan", dir))

	// One by one, and with what was restored named again.
	dir = filepath.Join(c.dir, "steps")
	for i, from := range [][]string{{c.full}, {c.inc1}, {c.full, c.inc1, c.inc2}} {
		out := ok(t, append([]string{"restore", dir}, from...)...)
		require.Equal(t, i == 2, strings.Contains(out, "full.bak: backup") && strings.Contains(out, "was there"), out)
		require.Equal(t, c.contents[i], ok(t, "scan", dir))
	}

	// From standard input, one after the other.
	dir = filepath.Join(c.dir, "piped")
	all := bytes.Join([][]byte{read(t, c.full), read(t, c.inc1), read(t, c.inc2)}, nil)
	status, out, stderr := with(t.Context(), bytes.NewReader(all), "restore", dir, "-", "--json")
	require.Zero(t, status, stderr)
	var answer restoreItem
	require.NoError(t, json.Unmarshal([]byte(out), &answer))
	require.Len(t, answer.Streams, 3)
	require.Equal(t, answer.Streams[1].ID, answer.Streams[2].Since)
	require.Nil(t, answer.Offset)
	require.Equal(t, c.contents[2], ok(t, "scan", dir))
}

func TestBackupsInTheWrongOrderAreRefused(t *testing.T) {
	t.Parallel()
	c := newChain(t)
	fresh := filepath.Join(c.dir, "fresh")
	status, stdout, stderr := siftkv(t, "restore", fresh, c.inc1)
	require.Equal(t, statusError, status)
	require.Contains(t, stderr, "the backup does not fit")
	require.Empty(t, stdout)

	dir := filepath.Join(c.dir, "restored")
	ok(t, "restore", dir, c.full)
	for _, from := range [][]string{{c.inc2}, {c.inc2, c.inc1}} {
		status, stdout, stderr = siftkv(t, append([]string{"restore", dir}, from...)...)
		require.Equal(t, statusError, status)
		require.Regexp(t, `^siftkv: the backup does not fit: .*/restored has come to backup [0-9a-f]{16}, and `+
			`.*/inc2.bak does not go on from there\n$`, stderr)
		require.Empty(t, stdout)
		require.Equal(t, c.contents[0], ok(t, "scan", dir), "it is as it was")
	}
	ok(t, "restore", dir, c.inc1, c.inc2)
	ok(t, "put", dir, "k", "v")
	status, _, stderr = siftkv(t, "restore", c.store, c.full)
	require.Equal(t, statusError, status)
	require.Contains(t, stderr, "the backup does not fit")
	status, _, stderr = siftkv(t, "restore", c.dir, c.full)
	require.Equal(t, statusError, status)
	require.Contains(t, stderr, "not empty")
	status, _, stderr = siftkv(t, "backup", dir, filepath.Join(c.dir, "x.bak"), "--since", c.full+markSuffix)
	require.Zero(t, status, stderr, "a restored store is the same store")
	ok(t, "put", fresh, "k", "v", "--create")
	status, _, stderr = siftkv(t, "backup", fresh, filepath.Join(c.dir, "y.bak"), "--since", c.full+markSuffix)
	require.Equal(t, statusError, status)
	require.Contains(t, stderr, "the backup does not fit: the mark is of store")
	require.NoFileExists(t, filepath.Join(c.dir, "y.bak"+partialSuffix))
}

func TestARestoreThatBrokeOffGoesOn(t *testing.T) {
	t.Parallel()
	c := newChain(t)
	dir, short := filepath.Join(c.dir, "restored"), filepath.Join(c.dir, "short.bak")
	whole := read(t, c.inc1)
	require.NoError(t, os.WriteFile(short, whole[:len(whole)-5], 0o600))
	status, stdout, stderr := siftkv(t, "restore", dir, c.full, short)
	require.Equal(t, statusError, status)
	require.Regexp(t, `(?m)^.*/full.bak: backup .* restored: `, stdout)
	hint := stdout[strings.Index(stdout, "tail -c +"):]
	var from, offset int64
	_, err := fmt.Sscanf(hint, "tail -c +%d ", &from)
	require.NoError(t, err)
	_, err = fmt.Sscanf(stderr, "siftkv: the restore broke off at offset %d of the stream in ", &offset)
	require.NoError(t, err)
	require.Equal(t, offset+1, from, "tail counts from 1")
	require.Greater(t, offset, int64(0))

	status, _, stderr = siftkv(t, "scan", dir)
	require.Equal(t, statusError, status)
	require.Contains(t, stderr, "a restore is unfinished")

	// As the hint says, with what follows the offset.
	other := filepath.Join(c.dir, "other")
	require.NoError(t, os.CopyFS(other, os.DirFS(dir)))
	status, _, stderr = with(t.Context(), bytes.NewReader(whole[from-1:]), "restore", other, "-")
	require.Zero(t, status, stderr)
	require.Equal(t, c.contents[1], ok(t, "scan", other))

	// Or the same command, with the whole file.
	require.NoError(t, os.WriteFile(short, whole, 0o600))
	out := ok(t, "restore", dir, c.full, short, c.inc2, "--verify")
	require.Contains(t, out, "full.bak: backup")
	require.Equal(t, c.contents[2], ok(t, "scan", dir))
}

func TestDamagedBackupsAreStatus4(t *testing.T) {
	t.Parallel()
	c := newChain(t)
	ok(t, "backup", "--verify", c.inc1)
	flip(t, c.inc1, 3000)
	flip(t, c.inc1+markSuffix, 30)
	for name, args := range map[string][]string{
		"verify":     {"backup", "--verify", c.inc1},
		"restore":    {"restore", filepath.Join(c.dir, "new"), c.full, c.inc1},
		"no backup":  {"backup", "--verify", c.full + markSuffix},
		"no restore": {"restore", filepath.Join(c.dir, "new2"), c.full + markSuffix},
		"mark":       {"backup", c.store, filepath.Join(c.dir, "z.bak"), "--since", c.inc1 + markSuffix},
	} {
		status, _, stderr := siftkv(t, args...)
		require.Equal(t, statusDamage, status, "%s: %s", name, stderr)
	}
	status, _, stderr := siftkv(t, "backup", c.store, filepath.Join(c.dir, "z.bak"), "--since", c.full)
	require.Equal(t, statusUsage, status, "a backup is no mark: %s", stderr)
	require.NoFileExists(t, filepath.Join(c.dir, "z.bak"))
	for name, data := range map[string][]byte{"cut off": read(t, c.full)[:2000],
		"goes on": append(read(t, c.full), 'x'), "nothing": nil} {
		status, _, stderr := with(t.Context(), bytes.NewReader(data), "backup", "--verify", "-")
		require.Equal(t, statusDamage, status, "%s: %s", name, stderr)
	}

	// A table that is damaged ends a backup, which keeps what was whole.
	tables, err := filepath.Glob(filepath.Join(c.store, "*.sst"))
	require.NoError(t, err)
	flip(t, tables[len(tables)-1], 100)
	out := filepath.Join(c.dir, "broken.bak")
	status, stdout, stderr := siftkv(t, "backup", c.store, out, "--json")
	require.Equal(t, statusDamage, status)
	require.Contains(t, stderr, filepath.Base(tables[len(tables)-1]))
	var b backupItem
	require.NoError(t, json.Unmarshal([]byte(stdout), &b))
	require.Equal(t, backupItem{
		Backup: keytext.Name(out + partialSuffix), ID: b.ID, Store: b.Store, Bytes: b.Bytes, Files: len(tables) - 1,
		LastSeq: b.LastSeq, Offset: b.Offset, Mark: keytext.Name(out + partialSuffix + markSuffix),
	}, b)
	require.NoFileExists(t, out)
	require.FileExists(t, string(b.Mark))
}

// short is an output that takes so many bytes.
type short struct {
	bytes.Buffer
	left int
}

func (s *short) Write(b []byte) (int, error) {
	n, _ := s.Buffer.Write(b[:min(len(b), s.left)])
	if s.left -= n; n < len(b) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

func TestABackupThatBrokeOffGoesOnFromItsMark(t *testing.T) {
	t.Parallel()
	c := newChain(t)
	mark := filepath.Join(c.dir, "mark")
	var stderr bytes.Buffer
	first := &short{left: len(read(t, c.full)) + 2000} // the first tables of three
	p := &program{stdout: first, stderr: &stderr}
	require.Equal(t, statusError, p.run(t.Context(), []string{"siftkv", "backup", c.store, "-", "--mark", mark}))
	require.Contains(t, stderr.String(), "broke off; everything before offset")
	require.Contains(t, stderr.String(), "--since "+mark)
	part := filepath.Join(c.dir, "part.bak")
	require.NoError(t, os.WriteFile(part, first.Bytes(), 0o600))

	rest := filepath.Join(c.dir, "rest.bak")
	ok(t, "backup", c.store, rest, "--since", mark, "--mark", mark)
	require.Less(t, len(read(t, rest)), first.Len()+len(read(t, c.inc1)), "it has not all of it again")
	dir := filepath.Join(c.dir, "restored")
	ok(t, "restore", dir, part, rest, "--verify")
	require.Equal(t, c.contents[2], ok(t, "scan", dir))

	// A pipe that nobody reads is an error here.
	stderr.Reset()
	p = &program{stdout: closedPipe{}, stderr: &stderr}
	require.Equal(t, statusError, p.run(t.Context(), []string{"siftkv", "backup", c.store, "-"}))
	require.Contains(t, stderr.String(), "the reader of the backup has gone")
}

func TestBackupOverwritesNothing(t *testing.T) {
	t.Parallel()
	c := newChain(t)
	before := read(t, c.full)
	status, _, stderr := siftkv(t, "backup", c.store, c.full)
	require.Equal(t, statusError, status)
	require.Contains(t, stderr, "file already exists")
	require.Equal(t, before, read(t, c.full))
	ok(t, "backup", c.store, c.full, "--force")
	require.NotEqual(t, before, read(t, c.full))

	out := filepath.Join(c.dir, "new.bak")
	require.NoError(t, os.WriteFile(out+partialSuffix, []byte("useful"), 0o600))
	status, _, stderr = siftkv(t, "backup", c.store, out)
	require.Equal(t, statusError, status)
	require.Contains(t, stderr, "left by a backup that broke off")
	ok(t, "backup", c.store, out, "--force")
	require.NoFileExists(t, out+partialSuffix)

	notes := filepath.Join(c.dir, "notes")
	require.NoError(t, os.WriteFile(notes, []byte("remember"), 0o600))
	status, _, stderr = siftkv(t, "backup", c.store, out+"2", "--mark", notes)
	require.Equal(t, statusUsage, status)
	require.Contains(t, stderr, "would be replaced, and is no mark")
	require.NoFileExists(t, out+"2")

	// A mark that was lost comes from the backup.
	mark := read(t, c.inc2+markSuffix)
	ok(t, "backup", "--verify", c.inc2, "--mark", c.inc2+".again")
	require.Equal(t, mark, read(t, c.inc2+".again"))
	for _, args := range [][]string{{"backup"}, {"backup", c.store}, {"backup", c.store, out, "--verify", out},
		{"restore", out}} {
		status, _, stderr := siftkv(t, args...)
		require.Equal(t, statusUsage, status, stderr)
	}
	status, _, _ = siftkv(t, "backup", filepath.Join(c.dir, "nowhere"), out+"3")
	require.Equal(t, statusError, status)
	require.NoFileExists(t, out+"3"+partialSuffix)
}

// silentInput is an input that never says anything.
func silentInput(t *testing.T) io.Reader {
	r, w := io.Pipe()
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return r
}

func TestBackupsRestoresAndIngestsCanBeInterrupted(t *testing.T) {
	t.Parallel()
	c := newChain(t)
	file := sortedFile(t, filepath.Join(c.dir, "a.sst"), "a", "b")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{
		{"backup", c.store, filepath.Join(c.dir, "x.bak")}, {"backup", "--verify", c.full}, {"backup", "--verify", "-"},
		{"restore", filepath.Join(c.dir, "x"), c.full}, {"restore", filepath.Join(c.dir, "x"), "-"},
		{"ingest", c.store, file},
	} {
		status, _, stderr := with(canceled, silentInput(t), args...)
		require.Equal(t, statusInterrupted, status, "%v: %s", args, stderr)
		require.Contains(t, stderr, "siftkv: interrupted\n")
	}
	require.NoFileExists(t, filepath.Join(c.dir, "x.bak"+partialSuffix))
	require.Equal(t, c.contents[2], ok(t, "scan", c.store))

	// In the middle of a read that waits.
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	go func() {
		_, _ = w.Write(read(t, c.full)[:3000])
		cancel()
	}()
	status, _, _ := with(ctx, r, "restore", filepath.Join(c.dir, "y"), "-")
	require.Equal(t, statusInterrupted, status)
	require.NoError(t, w.Close())
	ok(t, "restore", filepath.Join(c.dir, "y"), c.full)
	require.Equal(t, c.contents[0], ok(t, "scan", filepath.Join(c.dir, "y")))
}

// sortedFile writes a file for ingest.
func sortedFile(t *testing.T, name string, keys ...string) string {
	t.Helper()
	f, err := os.Create(name)
	require.NoError(t, err)
	w := sstable.NewWriter(f, nil)
	for _, k := range keys {
		require.NoError(t, w.Set([]byte(k), []byte("of "+filepath.Base(name))))
	}
	_, err = w.Finish()
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return name
}

func TestIngest(t *testing.T) {
	t.Parallel()
	dir, store := t.TempDir(), filepath.Join(t.TempDir(), "store")
	one, two := sortedFile(t, filepath.Join(dir, "1.sst"), "a", "c"),
		sortedFile(t, filepath.Join(dir, "2.sst"), "d", "f")
	status, _, stderr := siftkv(t, "ingest", store, one)
	require.Equal(t, statusError, status)
	require.Contains(t, stderr, "there is no store")
	var answer struct {
		Ingested []string
		Files    int
		Bytes    int64
	}
	require.NoError(t, json.Unmarshal([]byte(ok(t, "ingest", store, two, one, "--create", "--json")), &answer))
	require.Equal(t, []string{two, one}, answer.Ingested)
	require.Equal(t, 2, answer.Files)
	require.EqualValues(t, len(read(t, one))+len(read(t, two)), answer.Bytes)
	before := ok(t, "scan", store)
	require.Equal(t, "a\tof 1.sst\nc\tof 1.sst\nd\tof 2.sst\nf\tof 2.sst\n", before)

	overlapping, damaged := sortedFile(t, filepath.Join(dir, "3.sst"), "b", "e"),
		sortedFile(t, filepath.Join(dir, "4.sst"), "x", "y")
	flip(t, damaged, 3)
	other := filepath.Join(dir, "other")
	ok(t, "put", other, "k", "v", "--create")
	ok(t, "backup", other, filepath.Join(dir, "other.bak")) // flushes
	tables, err := filepath.Glob(filepath.Join(other, "*.sst"))
	require.NoError(t, err)
	for want, c := range map[string]struct {
		status int
		files  []string
	}{
		"overlap at":         {statusError, []string{one, overlapping}},
		"a store's own file": {statusError, tables[:1]},
		"4.sst":              {statusDamage, []string{one, damaged}},
		"no such file":       {statusError, []string{one, filepath.Join(dir, "nowhere.sst")}},
		"expected \"<files>": {statusUsage, nil},
	} {
		status, stdout, stderr := siftkv(t, append([]string{"ingest", store}, c.files...)...)
		require.Equal(t, c.status, status, "%s: %s", want, stderr)
		require.Contains(t, stderr, want)
		require.Empty(t, stdout)
		require.Equal(t, before, ok(t, "scan", store), "all or nothing")
	}
	ok(t, "ingest", store, overlapping, "--link", "--skip-verify")
	require.Equal(t, "6\n", ok(t, "scan", store, "--count"))
	ok(t, "verify", store)
}
