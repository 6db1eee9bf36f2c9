package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/cli/clitest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/kv"
)

// finished returns how many files an import has finished, and what stage it has come to.
func finished(dest string) (files int, stage string) {
	state, err := os.ReadFile(filepath.Join(dest+".import", "state"))
	if err != nil {
		return 0, ""
	}
	for line := range bytes.Lines(state) {
		if bytes.HasPrefix(line, []byte(`{"file"`)) {
			files++
		}
		if bytes.HasPrefix(line, []byte(`{"stage"`)) {
			stage = strings.Trim(string(line), "{}\n")
		}
	}
	return files, stage
}

// endAt starts an import and ends it by a signal as soon as reached says so. It reports false if it was faster.
func endAt(t *testing.T, by os.Signal, reached func() bool, args ...string) (stderr string, ended bool) {
	t.Helper()
	var text bytes.Buffer
	p := &clitest.Process{Args: args, Stderr: &text}
	cmd := p.Command(t)
	require.NoError(t, cmd.Start())
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	for {
		select {
		case err := <-over:
			require.NoError(t, err, text.String())
			return text.String(), false
		default:
		}
		if reached() {
			_ = cmd.Process.Signal(by)
			err := <-over
			if err == nil {
				return text.String(), false
			}
			status, isExit := errors.AsType[*exec.ExitError](err)
			require.True(t, isExit, err)
			if early := status.ExitCode() < 0; by == os.Interrupt && !early { // before it listens
				require.Equal(t, 130, status.ExitCode(), text.String())
				require.Contains(t, text.String(), "the same command goes on")
			} else {
				require.True(t, status.Sys().(syscall.WaitStatus).Signaled(), text.String())
			}
			return text.String(), true
		}
	}
}

// An import that is interrupted or killed, wherever it is, is not begun again: a second run goes on, and what comes of
// it is whole.
func TestAnImportGoesOn(t *testing.T) {
	n := scale.Count(40_000, 150_000)
	c := testContent(2, n)
	for _, kind := range kinds {
		source := newStore(t, kind, c)
		before := files(t, source)
		for _, by := range []os.Signal{os.Interrupt, syscall.SIGKILL} {
			dest := filepath.Join(t.TempDir(), "dest")
			args := []string{source, dest, "--file-size", "1", "--threads", "2"}
			count := func(more int) func() bool {
				return func() bool { files, _ := finished(dest); return files >= more }
			}
			stages := []func() bool{count(1), count(3),
				func() bool { _, stage := finished(dest); return strings.Contains(stage, "ingesting") },
				func() bool { _, stage := finished(dest); return strings.Contains(stage, "ingested") }}
			ends := 0
			for _, reached := range stages {
				was, _ := finished(dest)
				stderr, ended := endAt(t, by, reached, args...)
				if !ended {
					break
				}
				ends++
				if was > 0 && !strings.Contains(stderr, "siftimport: interrupted") {
					require.NotContains(t, stderr, "not used")
				}
				now, _ := finished(dest)
				require.GreaterOrEqual(t, now, was, "files that were finished stay")
			}
			require.GreaterOrEqual(t, ends, 2, "%s %s", kind, by)
			if _, err := os.Stat(filepath.Join(dest + ".import")); err == nil {
				works(t, args...)
			}
			requireContent(t, expected(kind, c), dest)
			require.NoDirExists(t, dest+".import")
			require.Equal(t, before, files(t, source))
		}
	}
}

// interrupted leaves an import half done, and returns its arguments and its work directory. On a busy machine the
// import may have made its store before it is killed: then it tries another one.
func interrupted(t *testing.T, source string) (args []string, work string) {
	t.Helper()
	for range 100 {
		dest := filepath.Join(t.TempDir(), "dest")
		args = []string{source, dest, "--file-size", "1"}
		_, ended := endAt(t, syscall.SIGKILL, func() bool { n, _ := finished(dest); return n >= 2 }, args...)
		if _, err := os.Stat(dest); ended && errors.Is(err, fs.ErrNotExist) {
			return args, dest + ".import"
		}
	}
	require.Fail(t, "no import was killed in time")
	return nil, ""
}

// What is there of another import, or of a source that has changed, is not used.
func TestAnImportBeginsAgain(t *testing.T) {
	c := testContent(3, 100_000)
	source := newStore(t, "leveldb", c)
	args, _ := interrupted(t, source)
	r := works(t, append(args, "--block-size", "8192")...)
	require.Contains(t, r.Stderr, "are not used: they were written with other options")
	requireContent(t, c, args[1])

	args, work := interrupted(t, source)
	_, path := Source(source).cut()
	more := create(t, "leveldb", path)
	require.NoError(t, more.put([]byte("\xff\xff"), []byte("new")))
	require.NoError(t, more.close())
	changed := &content{append(c.keys, []byte("\xff\xff")), append(c.values, []byte("new"))}
	r = works(t, args...)
	require.Contains(t, r.Stderr, work+" are not used: the source has changed since")
	requireContent(t, changed, args[1])

	other := newStore(t, "leveldb", testContent(4, 10))
	args, _ = interrupted(t, source)
	args[0] = other
	r = works(t, args...)
	require.Contains(t, r.Stderr, "are not used: they are of another source")
	requireContent(t, testContent(4, 10), args[1])
}

// A file that was finished and is gone, cut short, or changed, is noticed.
func TestFinishedFilesThatAreGone(t *testing.T) {
	c := testContent(5, 100_000)
	source := newStore(t, "bbolt", c)
	args, work := interrupted(t, source)
	require.NoError(t, os.Remove(filepath.Join(work, "000002.sst")))
	works(t, args...)
	requireContent(t, expected("bbolt", c), args[1])

	args, work = interrupted(t, source)
	require.NoError(t, os.Truncate(filepath.Join(work, "000001.sst"), 1000))
	works(t, args...)
	requireContent(t, expected("bbolt", c), args[1])

	args, work = interrupted(t, source)
	flip(t, filepath.Join(work, "000001.sst"), 5000)
	r := siftimport(t, args...)
	require.Equal(t, 4, r.Status, r.Stderr)
	require.Contains(t, r.Stderr, "the copy differs from the source")
	require.Contains(t, r.Stderr, "remove "+args[1])
	require.NoDirExists(t, work)
}

// A line of the state that a crash has cut counts as not written.
func TestAStateThatWasCut(t *testing.T) {
	c := testContent(6, 100_000)
	source := newStore(t, "pebble", c)
	for cut := int64(1); cut < 250; cut += 31 {
		args, work := interrupted(t, source)
		state := filepath.Join(work, "state")
		info, err := os.Stat(state)
		require.NoError(t, err)
		require.NoError(t, os.Truncate(state, max(info.Size()-cut, 0)))
		works(t, args...)
		requireContent(t, c, args[1])
	}
}

// Only one import at a time works in a directory, and none in one that is not siftimport's.
func TestWorkDirectories(t *testing.T) {
	source := newStore(t, "bbolt", testContent(7, 10))
	dest := filepath.Join(t.TempDir(), "dest")
	require.NoError(t, os.Mkdir(dest+".import", 0o755))
	precious := filepath.Join(dest+".import", "precious")
	require.NoError(t, os.WriteFile(precious, []byte("x"), 0o600))
	r := siftimport(t, source, dest)
	require.Equal(t, 1, r.Status)
	require.Contains(t, r.Stderr, "no work directory of siftimport")
	require.FileExists(t, precious)

	require.NoError(t, os.Rename(precious, filepath.Join(dest+".import", "lock")))
	f, err := os.Open(filepath.Join(dest+".import", "lock"))
	require.NoError(t, err)
	require.NoError(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
	r = siftimport(t, source, dest)
	require.Equal(t, 1, r.Status)
	require.Contains(t, r.Stderr, "lock is open in another process")
	require.NoError(t, f.Close())
	works(t, source, dest)
}

// A destination that holds something stays as it is.
func TestDestinationsThatHoldSomething(t *testing.T) {
	c := testContent(8, 100)
	source := newStore(t, "pebble", c)
	dest := filepath.Join(t.TempDir(), "dest")
	db, err := kv.Open(dest, nil)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	works(t, source, dest) // a store without keys
	requireContent(t, c, dest)
	r := siftimport(t, source, dest)
	require.Equal(t, 1, r.Status)
	require.Contains(t, r.Stderr, dest+" is a store that has keys")
	requireContent(t, c, dest)
	require.NoDirExists(t, dest+".import")

	other := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(other, "notes"), nil, 0o600))
	r = siftimport(t, source, other)
	require.Equal(t, 1, r.Status)
	require.Contains(t, r.Stderr, "is not empty")
	require.Equal(t, []string{"notes"}, clitest.Names(t, other))
}
