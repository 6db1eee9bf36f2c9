package storetest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/racebuild"
)

// The test binary runs itself as a child process, which these variables tell
// what to do.
const (
	childEnv    = "SIFTKV_TEST_CHILD" // a key of Main's children
	childDirEnv = "SIFTKV_TEST_CHILD_DIR"

	// ChildSeedEnv has the seed of a child.
	ChildSeedEnv = "SIFTKV_TEST_CHILD_SEED"
)

// testMemory is the soft limit of the tests' memory, in bytes: parallel tests make much garbage at the same time.
const testMemory = 400 << 20

// Main runs the tests of a package that opens stores, or what the process does as a child of a test. Children are what
// children do, by the mode that Child gets.
//
// SEPARATE_FROM=1 go test -count=1 ./kv ./internal/storetest/... separates values from this length on, in bytes, where
// a test does not say otherwise, in object stores too. With SEPARATE_AT_COMMIT=1 that is done when they are committed.
// Histories, crashes, faults and full disks have to pass; some tests count files or sizes.
func Main(m *testing.M, children map[string]func(dir string) error) {
	if from := EnvInt("SEPARATE_FROM", 0); from > 0 {
		harness.SeparateByDefault(from, EnvInt("SEPARATE_AT_COMMIT", 0) > 0)
	}
	harness.NoIdleJobs() // tests count files and runs, however long they take
	run, ok := children[os.Getenv(childEnv)]
	if !ok {
		if !racebuild.Enabled { // it keeps in the heap what is outside it otherwise
			debug.SetMemoryLimit(testMemory)
			debug.SetGCPercent(300) // little lives, and page faults of what is collected often took a fifth of the time
		}
		flag.Parse()
		if n := flag.Lookup("test.parallel"); n.Value.String() == n.DefValue { // many tests wait, for disks or others
			_ = flag.Set(n.Name, strconv.Itoa(2*runtime.GOMAXPROCS(0)))
		}
		os.Exit(m.Run())
	}
	if err := run(os.Getenv(childDirEnv)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Child returns the command that runs this binary as a child.
func Child(t *testing.T, mode, dir string, seed int) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), childEnv+"="+mode, childDirEnv+"="+dir, ChildSeedEnv+"="+strconv.Itoa(seed))
	return cmd
}

// Step says that a child goes on, and waits until it is told to.
func Step() {
	fmt.Print(".")
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// KillAfter runs a child until it has made n steps, and reports whether it was killed there.
func KillAfter(t *testing.T, mode, dir string, steps int) bool {
	t.Helper()
	cmd := Child(t, mode, dir, 0)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	killed := true
	for n := range steps {
		if _, err := out.Read(make([]byte, 1)); err != nil {
			killed = false // it has ended
			break
		}
		if n < steps-1 {
			_, _ = in.Write([]byte{'.'})
		}
	}
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	return killed
}
