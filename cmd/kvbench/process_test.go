package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell/celltest"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/internal/cli/clitest"
	"github.com/siftkv/siftkv/internal/scale"
)

// process runs kvbench as a process of its own.
func process(t *testing.T, args ...string) clitest.Result {
	t.Helper()
	return (&clitest.Process{Args: args}).Run(t)
}

// savedResults is a directory of made-up results.
func savedResults(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(clitest.PublicDir(t), "results")
	for _, r := range celltest.Samples() {
		require.NoError(t, results.Save(dir, r))
	}
	return dir
}

// A measurer is a command that writes a result as JSON; those that make stores take
// --dir.
type measurer struct {
	name   string
	args   []string
	stores bool
}

func measurers(t *testing.T) []measurer {
	t.Helper()
	set := savedResults(t)
	cells := []string{"--keys", "1000", "--lookups", "50", "--reps", "1"}
	of := func(more []string, args ...string) []string { return append(args, more...) }
	return []measurer{
		{"run", of(cells, "run"), true},
		{"readamp", of(cells, "readamp", "--budget", "none", "--engine", "siftkv", "--filter", "none"), true},
		{"replay", []string{"trace", "replay", writeTrace(t, nil, true), "--lookups", "50", "--reps", "1"}, true},
		{"compare", []string{"compare", "--engine", "siftkv", "--workload", "load", "--keys", "1000", "--reps", "1",
			"--compression", "none"}, true},
		{"scale", []string{"scale", "--keys", "1000", "--reps", "1", "--seconds", "0.001"}, true},
		{"cold", []string{"scale", "--cold", "--keys", "1000", "--lookups", "10", "--engine", "siftkv", "--variant",
			"default"}, true},
		{"filters", []string{"filters", "--keys", "1000", "--probes", "2000", "--reps", "1", "--filter", "bloom:10",
			"--no-libraries"}, false},
		{"objects", []string{"objects", "--keys", "1000", "--lookups", "10", "--reps", "1", "--filter", "none",
			"--delay", "1ms"}, true},
		{"diff", []string{"diff", set, set}, false},
		{"trace info", []string{"trace", "info", writeTrace(t, nil, true)}, false},
	}
}

func TestADashIsStandardOutput(t *testing.T) {
	t.Parallel()
	for _, m := range measurers(t) {
		args := append(m.args, "--json", "-")
		if m.stores {
			args = append(args, "--dir", t.TempDir())
		}
		r := process(t, args...)
		require.Zero(t, r.Status, "%s: %s", m.name, r.Stderr)
		require.True(t, json.Valid([]byte(r.Stdout)), "%s: more than one document", m.name)
		if m.name == "readamp" {
			clitest.RequireJSONArray(t, r.Stdout)
		} else {
			clitest.RequireJSON(t, r.Stdout)
		}
	}
	r := process(t, "report", savedResults(t), "--html", "-")
	require.Zero(t, r.Status, r.Stderr)
	require.True(t, strings.HasPrefix(strings.ToLower(r.Stdout), "<!doctype html>"), "%.80s", r.Stdout)
	require.NotContains(t, r.Stderr, "wrote")
}

// What cannot be written is noticed before anything is measured.
func TestAnOutputThatCannotBeWrittenIsNoticedFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "dir"), 0o700))
	refused := func(args ...string) {
		t.Helper()
		status, stdout, stderr := kvbench(t, &program{}, args...)
		require.Equal(t, 2, status, "%v: %s", args, stderr)
		require.Empty(t, stdout, args)
		require.Equal(t, 1, strings.Count(stderr, "\n"), "%v: %s", args, stderr)
	}
	for _, m := range measurers(t) {
		for _, path := range []string{filepath.Join(dir, "missing", "x"), filepath.Join(file, "x"),
			filepath.Join(dir, "dir")} {
			refused(append(m.args, "--json", path)...)
		}
	}
	cells := []string{"--keys", "1000", "--lookups", "50", "--reps", "1"}
	refused(append([]string{"run", "--out", file}, cells...)...)
	refused(append([]string{"sweep", "--out", filepath.Join(file, "x")}, cells...)...)
	set := savedResults(t)
	refused("report", set, "--html", filepath.Join(dir, "missing", "x"))
	refused("report", set, "--metric", "absent blocks/op", "--html", filepath.Join(dir, "missing", "x"))
	require.ElementsMatch(t, []string{"file", "dir"}, clitest.Names(t, dir))
}

// A file that is asked for keeps its kind: a device, a pipe and a link stay what they
// are, and get what is written.
func TestOutputsKeepTheirKind(t *testing.T) {
	t.Parallel()
	set := savedResults(t)
	outputs := map[string][]string{
		"json": {"diff", set, set, "--json"}, "html": {"report", set, "--html"},
		"experiment": {"run", "--keys", "1000", "--lookups", "50", "--reps", "1", "--dir", t.TempDir(), "--json"},
	}
	for name, args := range outputs {
		full := clitest.FullDevice(t)
		r := process(t, append(args, full)...)
		require.Equal(t, 1, r.Status, "%s: %s", name, r.Stderr)
		require.Contains(t, r.Stderr, "no space left on device")
		clitest.RequireType(t, full, fs.ModeDevice|fs.ModeCharDevice)

		dir := t.TempDir()
		link, target := filepath.Join(dir, "link"), filepath.Join(dir, "target")
		require.NoError(t, os.Symlink("target", link))
		for range 2 {
			r = process(t, append(args, link)...)
			require.Zero(t, r.Status, "%s: %s", name, r.Stderr)
			clitest.RequireType(t, link, fs.ModeSymlink)
			clitest.RequireType(t, target, 0)
		}

		pipe := filepath.Join(dir, "pipe")
		clitest.NamedPipe(t, pipe)
		read := make(chan []byte)
		go func() {
			data, _ := os.ReadFile(pipe)
			read <- data
		}()
		r = process(t, append(args, pipe)...)
		require.Zero(t, r.Status, "%s: %s", name, r.Stderr)
		require.Greater(t, len(<-read), 100, name)
		clitest.RequireType(t, pipe, fs.ModeNamedPipe)
		require.ElementsMatch(t, []string{"link", "target", "pipe"}, clitest.Names(t, dir), "nothing temporary is left")
	}
}

// Standard output may be named as a file, too.
func TestStandardOutputByItsNameIsNotReplaced(t *testing.T) {
	t.Parallel()
	set, name := savedResults(t), filepath.Join(t.TempDir(), "out")
	out, err := os.Create(name)
	require.NoError(t, err)
	defer func() { require.NoError(t, out.Close()) }()
	r := (&clitest.Process{Args: []string{"diff", set, set, "--json", name}, Stdout: out}).Run(t)
	require.Zero(t, r.Status, r.Stderr)
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	text := process(t, "diff", set, set).Stdout
	require.True(t, strings.HasPrefix(string(data), text), "the text, and after it the JSON")
	var d tidy.Result
	require.NoError(t, json.Unmarshal(data[len(text):], &d))
}

// Another user's file in a directory such as /tmp may be written to, and not replaced.
func TestAFileThatMayOnlyBeWrittenTo(t *testing.T) {
	t.Parallel()
	set, dir := savedResults(t), filepath.Join(clitest.PublicDir(t), "tmp")
	file := filepath.Join(dir, "diff.json")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.Chmod(dir, os.ModeSticky|0o777)) //nolint:gosec // as that of /tmp
	require.NoError(t, os.WriteFile(file, bytes.Repeat([]byte("old"), 10_000), 0o600))
	require.NoError(t, os.Chmod(file, 0o666)) //nolint:gosec // on purpose
	r := (&clitest.Process{Args: []string{"diff", set, set, "--json", file}, Nobody: true}).Run(t)
	require.Zero(t, r.Status, r.Stderr)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, process(t, "diff", set, set, "--json", "-").Stdout, string(data))
	require.Equal(t, []string{"diff.json"}, clitest.Names(t, dir))
}

// A file stays its owner's, whoever writes it.
func TestAFileKeepsItsOwner(t *testing.T) {
	t.Parallel()
	set, dir := savedResults(t), filepath.Join(clitest.PublicDir(t), "open")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.Chmod(dir, 0o777)) //nolint:gosec // on purpose
	for _, byNobody := range []bool{false, true} {
		file := filepath.Join(dir, fmt.Sprintf("by-nobody-%v.json", byNobody))
		require.NoError(t, os.WriteFile(file, []byte("old"), 0o600))
		require.NoError(t, os.Chmod(file, 0o666)) //nolint:gosec // on purpose
		if !byNobody && os.Geteuid() == 0 {
			require.NoError(t, os.Chown(file, clitest.NobodyID, clitest.NobodyID))
		}
		before, err := os.Stat(file)
		require.NoError(t, err)
		r := (&clitest.Process{Args: []string{"diff", set, set, "--json", file}, Nobody: byNobody}).Run(t)
		require.Zero(t, r.Status, r.Stderr)
		after, err := os.Stat(file)
		require.NoError(t, err)
		require.Greater(t, after.Size(), before.Size())
		require.Equal(t, before.Mode(), after.Mode())
		clitest.RequireSameOwner(t, before, after)
	}
}

func TestAFullDiskKeepsWhatWasThere(t *testing.T) {
	t.Parallel()
	set, dir := savedResults(t), t.TempDir()
	old := []byte("an old page")
	for _, c := range []struct {
		args []string
		file string
	}{
		{[]string{"report", set, "--html", filepath.Join(dir, "page")}, "page"},
		{[]string{"diff", set, set, "--json", filepath.Join(dir, "diff")}, "diff"},
		{[]string{"report", set, "--html", filepath.Join(dir, "one"), "--metric", "absent blocks/op"}, "one"},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, c.file), old, 0o600))
		p := &clitest.Process{Args: c.args, Full: true, FileSize: 600}
		r := p.Run(t)
		require.Equal(t, 1, r.Status, "%v: %s", c.args, r.Stderr)
		require.Contains(t, r.Stderr, "file too large", c.args)
		require.Equal(t, 1, strings.Count(r.Stderr, "\n"), "said once: %s", r.Stderr)
		data, err := os.ReadFile(filepath.Join(dir, c.file))
		require.NoError(t, err)
		require.Equal(t, old, data, c.args)
		require.Equal(t, []string{c.file}, clitest.Names(t, dir), c.args)
		require.NoError(t, os.Remove(filepath.Join(dir, c.file)))
	}
}

// printing are commands that print, by their arguments.
func printing(t *testing.T) map[string][]string {
	t.Helper()
	set := savedResults(t)
	commands := map[string][]string{
		"env": {"env"}, "env json": {"env", "--json"}, "completion": {"completion", "bash"}, "help": {"--help"},
		"command help": {"run", "--help"}, "version": {"--version"},
		"plan": {"sweep", "--plan"}, "one table": {"report", set, "--metric", "absent blocks/op"},
		"page": {"report", set, "--html", "-"},
		"sweep": {"sweep", "--keys", "1000", "--lookups", "50", "--reps", "1", "--quiet", "--dir", t.TempDir(),
			"--out", filepath.Join(t.TempDir(), "out")},
	}
	for _, format := range []string{"table", "csv", "json"} {
		commands[format] = []string{"report", set, "--format", format}
	}
	for _, m := range measurers(t) {
		commands[m.name] = m.args
		if m.stores {
			commands[m.name] = append(m.args, "--dir", t.TempDir())
		}
	}
	return commands
}

func TestAFullStandardOutputIsAnError(t *testing.T) {
	t.Parallel()
	for name, args := range printing(t) {
		r := (&clitest.Process{Args: args, Stdout: clitest.FullOutput(t)}).Run(t)
		require.Equal(t, 1, r.Status, "%s: %s", name, r.Stderr)
		require.Contains(t, r.Stderr, "no space left on device", name)
		require.NotContains(t, r.Stderr, "--help", name)
	}
}

// Who reads no further has seen enough: the rest of the work is done.
func TestAReaderThatLeavesIsNoError(t *testing.T) {
	t.Parallel()
	for name, args := range printing(t) {
		r := (&clitest.Process{Args: args, Stdout: clitest.ClosedPipe(t)}).Run(t)
		require.Zero(t, r.Status, "%s: %s", name, r.Stderr)
		require.NotContains(t, r.Stderr, "pipe", name)
	}
	set, file := savedResults(t), filepath.Join(t.TempDir(), "diff.json")
	r := (&clitest.Process{Args: []string{"diff", set, set, "--json", file}, Stdout: clitest.ClosedPipe(t)}).Run(t)
	require.Zero(t, r.Status)
	require.FileExists(t, file)

	better := celltest.Samples()
	for _, s := range better {
		for i := range s.Metrics {
			s.Metrics[i].Value /= 2
		}
		require.NoError(t, results.Save(filepath.Join(t.TempDir(), "unused"), s))
	}
	less := filepath.Join(t.TempDir(), "less")
	for _, s := range better {
		require.NoError(t, results.Save(less, s))
	}
	args := []string{"diff", less, set, "--fail-on", "blocks/op>0%"}
	require.Equal(t, 4, process(t, args...).Status)
	r = (&clitest.Process{Args: args, Stdout: clitest.ClosedPipe(t)}).Run(t)
	require.Equal(t, 4, r.Status, "a limit that is passed is one all the same")
}

// Under nohup, the end of the terminal is none of the experiment.
func TestAHangupThatIsIgnoredStaysSo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, w := io.Pipe()
	args := []string{"run", "--keys", "1000", "--lookups", "20000", "--reps", "8", "--dir", dir, "--progress", "plain"}
	cmd := (&clitest.Process{Args: args, Stderr: w, Nohup: true}).Command(t)
	require.NoError(t, cmd.Start())
	go func() {
		_ = cmd.Wait() // the status says it
		_ = w.Close()
	}()
	lines := bufio.NewReader(r)
	_, err := lines.ReadString('\n')
	require.NoError(t, err)
	_ = cmd.Process.Signal(syscall.SIGHUP) // it may have ended
	_, err = io.Copy(io.Discard, lines)
	require.NoError(t, err)
	require.Zero(t, cmd.ProcessState.ExitCode())
}

// A signal ends an experiment, and its temporary stores go.
func TestSignalsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	long := map[string][]string{
		"run": {"run", "--keys", "1000", "--lookups", "10000", "--reps", "1000"},
		"sweep": {"sweep", "--keys", "1000", "--lookups", "10000", "--reps", "1000", "--out",
			filepath.Join(t.TempDir(), "out")},
		"readamp": {"readamp", "--keys", "1000", "--lookups", "1000000", "--reps", "1000"},
		"compare": {"compare", "--keys", "1000", "--seconds", "1000", "--engine", "siftkv", "--workload",
			"load,absent"},
		"scale":   {"scale", "--keys", "1000", "--seconds", "1000"},
		"procs":   {"scale", "--keys", "1000", "--procs", "2", "--seconds", "1000"},
		"cold":    {"scale", "--cold", "--keys", "1000", "--lookups", "1000000000"},
		"objects": {"objects", "--keys", "1000", "--lookups", "10000000", "--filter", "none"},
	}
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
	for i, name := range slices.Sorted(maps.Keys(long)) { // each has some of the signals, in turn
		args := long[name]
		for k := range min(scale.Count(1, len(ends)), len(ends)) {
			end := ends[(i+k)%len(ends)]
			dir := t.TempDir()
			r, w := io.Pipe()
			cmd := (&clitest.Process{Args: append(args, "--dir", dir, "--progress", "plain"), Stderr: w}).Command(t)
			require.NoError(t, cmd.Start())
			go func() {
				_ = cmd.Wait() // the status says it
				_ = w.Close()
			}()
			lines := bufio.NewReader(r)
			for len(clitest.Names(t, dir)) == 0 { // until it is at work
				_, err := lines.ReadString('\n')
				require.NoError(t, err, name)
			}
			require.NoError(t, cmd.Process.Signal(end))
			rest, err := io.ReadAll(lines)
			require.NoError(t, err)
			require.Equal(t, 130, cmd.ProcessState.ExitCode(), "%s %s: %s", name, end, rest)
			require.Contains(t, string(rest), "interrupted", name)
			require.Empty(t, clitest.Names(t, dir), "%s %s", name, end)
		}
	}
}
