package storecmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/cli/clitest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// A copy goes from anywhere to anywhere, has everything in the files of the source, and is refused where there is a
// store.
func TestCopies(t *testing.T) {
	t.Parallel()
	url, parent := objectsStore(t), t.TempDir()
	want := works(t, "scan", url)
	from := url
	for i, to := range []string{"first", "second", "dir://third", "dir://fourth", "fifth"} {
		to = strings.Replace("dir://"+filepath.Join(parent, strings.TrimPrefix(to, "dir://")), "dir://",
			to[:strings.LastIndex("/"+to, "/")], 1)
		said := works(t, "copy", from, to)
		require.Contains(t, said, "sequence number 2002: ")
		require.Contains(t, said, "; verified: each file was read back, and has the XXH64 of the source's\n")
		require.Equal(t, want, works(t, "scan", to), "copy %d", i)
		works(t, "verify", to)
		for _, again := range []string{from, url} {
			r := process(t, "copy", again, to)
			require.Equal(t, statusError, r.Status, r.Stderr)
			require.Contains(t, r.Stderr, "holds a store")
		}
		from = to
	}
	described := clitest.RequireJSON(t, works(t, "copy", from, filepath.Join(parent, "json"), "--json"))[0]
	require.Equal(t, true, described["verified"])
	require.Equal(t, "2002", fmt.Sprint(described["entries"]))
	works(t, "put", from, "another", "write") // a copy is a store like any other
	r := process(t, "copy", filepath.Join(parent, "nowhere"), filepath.Join(parent, "x"))
	require.Equal(t, statusError, r.Status)
	require.NoDirExists(t, filepath.Join(parent, "x"))
	require.NoError(t, os.WriteFile(filepath.Join(clitestDir(t, parent, "foreign"), "notes.txt"), nil, 0o600))
	require.Contains(t, process(t, "copy", url, filepath.Join(parent, "foreign")).Stderr, "notes.txt")
	require.NotContains(t, works(t, "copy", url, filepath.Join(parent, "trusted"), "--skip-verify"), "verified")
}

func clitestDir(t *testing.T, parent, name string) string {
	t.Helper()
	dir := filepath.Join(parent, name)
	require.NoError(t, os.Mkdir(dir, 0o700))
	return dir
}

// A copy keeps the filters and the compression of the source, whatever the defaults are, and runs beside the writer.
func TestACopyBesideTheWriter(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	cuckoo, err := filterpolicy.Parse("cuckoo:12")
	require.NoError(t, err)
	db, err := kv.Open(dir, &kv.Options{Filter: cuckoo, Merger: kv.Append(",")})
	require.NoError(t, err)
	for i := range 1000 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "%04d", i), []byte("value"), kv.NoSync))
	}
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Merge([]byte("merged"), []byte("1"), kv.NoSync))
	require.NoError(t, db.Merge([]byte("merged"), []byte("2"), kv.NoSync))
	url := "dir://" + filepath.Join(t.TempDir(), "objects")
	works(t, "copy", dir, url)
	for _, name := range clitest.Names(t, dir) {
		require.NotContains(t, name, "READER", "the reader has gone")
	}
	require.NoError(t, db.Set([]byte("later"), nil, nil))
	require.Equal(t, "1001\n", works(t, "scan", url, "--count"))
	require.Equal(t, "1,2\n", works(t, "get", url, "merged"))
	require.Contains(t, works(t, "stats", url), "cuckoo×1")
	require.NoError(t, db.Close())
}

// killedHalfWay starts a copy that stalls half way, and kills it.
func killedHalfWay(t *testing.T, command, from, to string) clitest.Result {
	t.Helper()
	var stderr bytes.Buffer
	p := &clitest.Process{Args: []string{command, from, to}, Stderr: &stderr}
	cmd := p.Command(t)
	cmd.Env = append(cmd.Env, "STORECMD_TEST_STALL=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = io.ReadFull(out, make([]byte, len(stalled)))
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.NoError(t, err, stderr.String())
	return clitest.Result{Status: cmd.ProcessState.ExitCode(), Stderr: stderr.String()}
}

const stalled = "stalled\n"

// openStalling opens a directory as dir:// does. In a process of killedHalfWay it stalls at the second sorted file that
// is put there, or is read after it was opened, and says so.
func openStalling(_ context.Context, url string) (objstore.Store, error) {
	s, err := objstore.OpenDir(strings.TrimPrefix(url, "stalling://"))
	if err != nil || os.Getenv("STORECMD_TEST_STALL") == "" {
		return s, err
	}
	faults := objstoretest.NewFaults(s, 1)
	var mu sync.Mutex
	used := map[string]bool{}
	faults.Inject(func(c objstoretest.Call) objstoretest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasPrefix(c.Key, "sst/") && (c.Kind == objstore.Put || c.Kind == objstore.Get && c.Nth > 1) {
			used[c.Key] = true
		}
		if len(used) == 2 {
			fmt.Print(stalled)
			select {}
		}
		return objstoretest.Fault{}
	})
	return faults, nil
}

// A copy that is killed, or interrupted, leaves no store and the source as it was; it can be made again.
func TestACopyThatIsBrokenOff(t *testing.T) {
	t.Parallel()
	source := objectsStore(t)
	want := works(t, "scan", source)
	before := filesUnder(t, strings.TrimPrefix(source, "dir://"))
	dir := t.TempDir()
	objects := filepath.Join(dir, "objects")
	for range 3 { // into an object store
		r := killedHalfWay(t, "copy", source, "stalling://"+objects)
		require.Equal(t, -1, r.Status)
		require.Contains(t, process(t, "scan", "dir://"+objects).Stderr, "there is no store")
	}
	works(t, "copy", source, "dir://"+objects)
	require.Equal(t, want, works(t, "scan", "dir://"+objects))

	stalling := "stalling://" + strings.TrimPrefix(source, "dir://")
	for range 3 { // into a directory
		r := killedHalfWay(t, "copy", stalling, filepath.Join(dir, "dir"))
		require.Equal(t, -1, r.Status)
		require.Equal(t, statusError, process(t, "scan", filepath.Join(dir, "dir")).Status)
	}
	works(t, "copy", source, filepath.Join(dir, "dir"))
	require.Equal(t, want, works(t, "scan", filepath.Join(dir, "dir")))
	require.Equal(t, before, filesUnder(t, strings.TrimPrefix(source, "dir://")))
}

// An interrupt ends a copy whose object store does not answer.
func TestACopyThatIsInterrupted(t *testing.T) {
	t.Parallel()
	source := objectsStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	mem := objstore.NewMem()
	hanging := objstoretest.NewFaults(mem, 1)
	hanging.Inject(func(c objstoretest.Call) objstoretest.Fault {
		if c.Kind == objstore.Put && c.Nth == 1 && strings.HasPrefix(c.Key, "sst/") {
			cancel()
			return objstoretest.Fault{Delay: 1 << 60}
		}
		return objstoretest.Fault{}
	})
	var out, stderr bytes.Buffer
	run := func(ctx context.Context, s objstore.Store) int {
		p := &program{stdout: &out, stderr: &stderr, openers: Openers{
			"mem": func(context.Context, string) (objstore.Store, error) { return unclosed{s}, nil },
		}}
		return p.run(ctx, []string{"siftkv", "copy", source, "mem://"})
	}
	require.Equal(t, statusInterrupted, run(ctx, hanging), stderr.String())
	require.Equal(t, statusOK, run(t.Context(), mem), stderr.String())

	// What was damaged on its way is not called a copy.
	damaging := objstoretest.NewFaults(objstore.NewMem(), 1)
	damaging.Inject(func(c objstoretest.Call) objstoretest.Fault {
		return objstoretest.Fault{Corrupt: c.Kind == objstore.Get && strings.HasPrefix(c.Key, "sst/") && c.Size > 1<<14}
	})
	require.Equal(t, statusDamage, run(t.Context(), damaging), stderr.String())
	require.Contains(t, stderr.String(), "is not as it was sent")

	failing := objstoretest.NewFaults(objstore.NewMem(), 1)
	failing.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
		if c.Kind == objstore.Put {
			f = objstoretest.Fault{Outcome: objstoretest.NotPerformed, Err: errors.New("no room")}
		}
		return f
	})
	stderr.Reset()
	require.Equal(t, statusError, run(t.Context(), failing))
	require.Contains(t, stderr.String(), "the copy to mem:// broke off, and is no store; run the command again: ")
	require.Contains(t, stderr.String(), "no room")
}

// A copy of which the comparison broke off is a store, and the command says so: it cannot be run again.
func TestACopyThatWasNotComparedToItsEnd(t *testing.T) {
	t.Parallel()
	source := objectsStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	for _, broken := range []struct {
		with   func() objstoretest.Fault
		status int
	}{
		{func() objstoretest.Fault {
			cancel()
			return objstoretest.Fault{Delay: 1 << 60}
		}, statusInterrupted},
		{func() objstoretest.Fault {
			return objstoretest.Fault{Outcome: objstoretest.NotPerformed, Err: errors.New("gone away")}
		}, statusError},
	} {
		mem := objstore.NewMem()
		breaking := objstoretest.NewFaults(mem, 1)
		breaking.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
			if c.Kind == objstore.Get && strings.HasPrefix(c.Key, "sst/") && c.Size > 1<<14 {
				f = broken.with()
			}
			return f
		})
		var out, stderr bytes.Buffer
		run := func(ctx context.Context, s objstore.Store, args ...string) int {
			p := &program{stdout: &out, stderr: &stderr, openers: Openers{
				"mem": func(context.Context, string) (objstore.Store, error) { return unclosed{s}, nil },
			}}
			return p.run(ctx, append([]string{"siftkv"}, args...))
		}
		require.Equal(t, broken.status, run(ctx, breaking, "copy", source, "mem://"), stderr.String())
		require.Contains(t, out.String(), "mem://: copy of store ")
		require.Contains(t, out.String(), "; not verified: run siftkv verify mem://\n")
		require.Equal(t, statusOK, run(t.Context(), mem, "verify", "mem://"), stderr.String())
		ctx = t.Context()
	}
}

// unclosed keeps an object store open for another command.
type unclosed struct{ objstore.Store }

func (unclosed) Close() error { return nil }

func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script := works(t, "completion", shell)
		require.Contains(t, script, "copy", shell)
		require.Contains(t, script, "skip-verify", shell)
	}
	require.Equal(t, statusUsage, process(t, "completion", "csh").Status)
}
