package compare

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/internal/cli/progress"
	"github.com/siftkv/siftkv/internal/racebuild"
	"github.com/siftkv/siftkv/internal/scale"
)

// TestMain is the worker too: the test binary started as "worker NAME", where NAME
// says what is wrong with its store.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "worker" {
		restInterval = 10 * time.Millisecond
		if err := Serve(context.Background(), os.Stdin, os.Stdout, broken[os.Args[2]]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// broken are stores that are not as they should be.
var broken = map[string]func(string, engine.Live) engine.Live{
	"forgetful": func(_ string, s engine.Live) engine.Live { return forgetful{s} },
	"skipping":  func(_ string, s engine.Live) engine.Live { return skipping{s} },
	"losing":    func(_ string, s engine.Live) engine.Live { return losing{s} },
	"late":      func(_ string, s engine.Live) engine.Live { return late{s} },
	"mortal":    func(_ string, s engine.Live) engine.Live { return mortal{s} },
	"stale":     func(_ string, s engine.Live) engine.Live { return &stale{Live: s, seen: map[string]int{}} },
	"keyless":   func(_ string, s engine.Live) engine.Live { return keyless{s} },
}

// stale passes the third write of a key over.
type stale struct {
	engine.Live
	seen map[string]int
}

func (s *stale) Put(key, value []byte) error {
	if s.seen[string(key)]++; s.seen[string(key)] == 3 {
		return nil
	}
	return s.Live.Put(key, value)
}

// keyless leaves one key out of a scan of keys, and has another twice.
type keyless struct{ engine.Live }

func (s keyless) ScanKeys(start []byte, limit int, visit func(key []byte)) error {
	n := 0
	var first []byte
	return s.Live.(engine.KeyScanner).ScanKeys(start, limit, func(key []byte) {
		if n++; n == 1 {
			first = bytes.Clone(key)
		}
		if n == 3 {
			key = first
		}
		visit(key)
	})
}

// forgetful does not have one key in eight.
type forgetful struct{ engine.Live }

func (f forgetful) NewReader(a engine.Access, k engine.Kind) (engine.Reader, error) {
	r, err := f.Live.NewReader(a, k)
	return forgetfulReader{r}, err
}

type forgetfulReader struct{ engine.Reader }

func (f forgetfulReader) Get(dst, key []byte) ([]byte, bool, error) {
	if key[len(key)-1]%8 == 0 {
		return dst, false, nil
	}
	return f.Reader.Get(dst, key)
}

// skipping leaves one entry of each scan out, and goes one further.
type skipping struct{ engine.Live }

func (s skipping) Scan(start []byte, limit int, visit func(key, value []byte)) error {
	n := 0
	return s.Live.Scan(start, limit+1, func(key, value []byte) {
		if n++; n != 3 {
			visit(key, value)
		}
	})
}

// losing does not have the last key in order.
type losing struct{ engine.Live }

func (l losing) Scan(start []byte, limit int, visit func(key, value []byte)) error {
	var key, value []byte
	return l.Live.Scan(start, limit, func(k, v []byte) {
		if key != nil {
			visit(key, value)
		}
		key, value = bytes.Clone(k), bytes.Clone(v)
	})
}

// late leaves out the first entry of each scan.
type late struct{ engine.Live }

func (l late) Scan(start []byte, limit int, visit func(key, value []byte)) error {
	return l.Live.Scan(append(slices.Clip(start), 0), limit, visit)
}

// mortal ends the process when it is settled.
type mortal struct{ engine.Live }

func (mortal) Settle(context.Context) error {
	fmt.Fprintln(os.Stderr, "out of luck")
	os.Exit(7)
	return nil
}

// tiny is a config of a run that takes moments. fault names one of broken.
func tiny(t *testing.T, fault string) *Config {
	t.Helper()
	return &Config{
		Settings: Settings{
			Engines: []string{"siftkv", "bbolt"}, Workloads: Workloads(), Compressions: []string{"snappy"},
			Keys: 2000, KeySize: 16, ValueSize: 100, Repetitions: 1, Loads: 1, Seconds: 0.002, Seed: 1,
			Store: engine.Settings{CacheBytes: 1 << 20, MemtableBytes: 1 << 20, BlockBytes: 4096, Compactions: 1},
			Large: Large{ValueSize: 8 << 10, Values: RandomValues, Data: 4 << 20, Minutes: 0.0005},
		},
		Setup: tinySetup(t, fault),
	}
}

// tinySetup is for experiments that take moments.
func tinySetup(t *testing.T, fault string) Setup {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return Setup{Dir: t.TempDir(), Progress: progress.New(io.Discard, "none"), Worker: []string{self, "worker", fault}}
}

// dir returns where temporary directories are made.
func (s *Setup) dir() string { return s.Dir }

// An experimental is the config of an experiment.
type experimental interface{ dir() string }

// interrupted requires that an experiment which is interrupted leaves nothing.
func interrupted[C experimental](t *testing.T, c C, run func(context.Context, C) (*tidy.Result, error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := run(ctx, c)
	require.ErrorIs(t, err, context.Canceled)
	left, err := os.ReadDir(c.dir())
	require.NoError(t, err)
	require.Empty(t, left)
}

// refused requires that an experiment refuses settings, says why, and leaves nothing.
func refused[C experimental](t *testing.T, config func(*testing.T) C,
	run func(context.Context, C) (*tidy.Result, error), changes map[string]func(C)) {
	t.Helper()
	for want, change := range changes {
		c := config(t)
		dir := c.dir()
		change(c)
		_, err := run(t.Context(), c)
		require.ErrorIs(t, err, bench.ErrUsage, want)
		require.ErrorContains(t, err, want)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

func TestEveryWorkloadOnEveryEngine(t *testing.T) {
	t.Parallel()
	c := tiny(t, "")
	c.Large.Data = max(leastLargeData, int64(scale.Count(leastLargeData, int(c.Large.Data))))
	c.Seconds = 0.0005 // so that no machine is so fast that it inserts all keys that are left to insert
	switch {           // the tests of the engines do all that each can
	case racebuild.Enabled:
		c.Engines = []string{"siftkv", "pebble"}
	case scale.Long():
		c.Engines = engine.Peers()
	default:
		c.Engines = []string{"siftkv", engine.SiftKVSeparatedName, engine.SiftKVSlotName, "pebble",
			engine.PebbleIteratorName, "bbolt"}
	}
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	for _, p := range phases {
		for _, e := range c.Engines {
			samples := r.Values(Cell(p.Name, "snappy", e), "operations")
			lacks := strings.HasPrefix(p.Name, "delete") && strings.Contains(p.Name, "range") &&
				!engine.DeletesRanges(e) || p.Name == "large-keys" && !engine.ScansKeys(e)
			if lacks || p.Stage.writes() && e == engine.PebbleIteratorName {
				require.Empty(t, samples, "%s on %s", p.Name, e)
				continue
			}
			require.Len(t, samples, 1, "%s on %s", p.Name, e)
			if p.Unit != "" {
				require.Positive(t, r.Values(Cell(p.Name, "snappy", e), PerSecond)[0], "%s on %s", p.Name, e)
				require.Positive(t, samples[0], "%s on %s", p.Name, e)
			}
		}
	}
	require.Equal(t, c.Engines, r.Each("engine"))
	require.Len(t, r.Cells("engine", "compression"), len(c.Engines), "a load of each")
	for _, f := range Figures {
		require.Len(t, r.Values(Cell(f.Phase, "snappy", "siftkv"), f.Name), 1, f.Name)
	}
	left, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, left, "the stores are removed")
}

func TestStoresAreSharedWhereCompressionMakesNoDifference(t *testing.T) {
	t.Parallel()
	c := tiny(t, "")
	c.Workloads, c.Compressions, c.Repetitions, c.Loads = []string{"load", "absent", "scan-10"},
		[]string{"none", "snappy"}, 2, 2
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	loads := map[string]int{}
	for _, of := range r.Cells("engine", "compression") {
		for _, seconds := range r.Values(of, "load") {
			loads[of["engine"]+" "+of["compression"]]++
			require.Positive(t, seconds)
		}
	}
	require.Equal(t, map[string]int{"siftkv none": 2, "siftkv snappy": 2, "bbolt none": 1}, loads)
	for _, workload := range []string{"absent", "scan-10"} {
		for _, compression := range c.Compressions {
			require.Len(t, r.Values(Cell(workload, compression, "siftkv"), PerSecond), 2)
			require.Len(t, r.Values(Cell(workload, compression, "bbolt"), PerSecond), 2)
		}
	}
}

func TestAWrongAnswerEndsTheRun(t *testing.T) {
	t.Parallel()
	for _, of := range [][2]string{{"forgetful", "zipf"}, {"forgetful", "ycsb-a"}, {"skipping", "scan-10"},
		{"losing", "ycsb-e"}, {"late", "ycsb-e"}} {
		c := tiny(t, of[0])
		c.Workloads = []string{of[1]}
		_, err := Run(t.Context(), c)
		require.ErrorIs(t, err, bench.ErrWrongAnswer, of)
		require.ErrorContains(t, err, "siftkv: wrong answer for the", of)
	}
}

func TestAWorkerThatDiesIsNamedWithItsLastWords(t *testing.T) {
	t.Parallel()
	c := tiny(t, "mortal")
	c.Workloads = []string{"load"}
	_, err := Run(t.Context(), c)
	require.EqualError(t, err,
		`siftkv: its process died during "settle" (exit status 7); its last words:`+"\nout of luck")
	left, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, left)

	c.Worker = []string{filepath.Join(c.Dir, "nothing")}
	_, err = Run(t.Context(), c)
	require.ErrorContains(t, err, "siftkv: start")
}

// cancelAt cancels when a text has been written to it.
type cancelAt struct {
	text   string
	seen   bytes.Buffer
	cancel func()
}

func (c *cancelAt) Write(p []byte) (int, error) {
	c.seen.Write(p)
	if strings.Contains(c.seen.String(), c.text) {
		c.cancel()
	}
	return len(p), nil
}

func TestAnInterruptLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"load siftkv", "warm up bbolt", "existing"} {
		ctx, cancel := context.WithCancel(t.Context())
		c := tiny(t, "")
		token := "token-of-" + filepath.Base(c.Dir) + strings.ReplaceAll(text, " ", "-")
		c.Worker = append(c.Worker, token)
		c.Workloads = []string{"existing", "ycsb-a"}
		c.Progress = progress.New(&cancelAt{text: text, cancel: cancel}, "plain")
		_, err := Run(ctx, c)
		require.ErrorIs(t, err, context.Canceled)
		left, err := os.ReadDir(c.Dir)
		require.NoError(t, err)
		require.Empty(t, left, "after %q", text)
		lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
		require.NoError(t, err)
		for _, path := range lines {
			line, _ := os.ReadFile(path) // other processes come and go
			require.NotContains(t, string(line), token, "after %q", text)
		}
		cancel()
	}
}

func TestAWorkerEndsWithItsParent(t *testing.T) {
	t.Parallel()
	c := tiny(t, "")
	cmd := exec.Command(c.Worker[0], c.Worker[1:]...)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	send, answers := json.NewEncoder(in), json.NewDecoder(out)
	for _, step := range []task{
		{Do: "start", Start: &startTask{Engine: "siftkv", Dir: []byte(filepath.Join(c.Dir, "s")), Keys: 2000,
			KeySize: 16, ValueSize: 100}},
		{Do: "open", Open: &c.Store},
		{Do: "load"},
	} {
		var a answer
		require.NoError(t, send.Encode(step))
		require.NoError(t, answers.Decode(&a))
		require.Empty(t, a.Error)
	}
	require.NoError(t, send.Encode(task{Do: "job", Job: &job{Kind: "existing", Seconds: 1e6}}))
	require.NoError(t, in.Close(), "the parent is gone")
	require.NoError(t, cmd.Wait(), "the worker ends in the middle of its job")
}

func TestAWorkerRefusesWhatItDoesNotKnow(t *testing.T) {
	w := &worker{}
	_, err := w.do(t.Context(), task{Do: "load"})
	require.ErrorContains(t, err, "before the start")
	_, err = w.do(t.Context(), task{Do: "start",
		Start: &startTask{Engine: "siftkv", Dir: []byte(t.TempDir()), Keys: 1000, KeySize: 16, ValueSize: 100}})
	require.NoError(t, err)
	_, err = w.do(t.Context(), task{Do: "dance"})
	require.ErrorContains(t, err, `"dance"`)
	_, err = w.do(t.Context(), task{Do: "open",
		Open: &engine.Settings{Compression: "none", MemtableBytes: 1 << 20, BlockBytes: 4096, CacheBytes: 1 << 20,
			Compactions: 1}})
	require.NoError(t, err)
	for _, kind := range []string{"walk", "ycsb-z"} {
		_, err = w.do(t.Context(), task{Do: "job", Job: &job{Kind: kind}})
		require.ErrorContains(t, err, kind)
	}
	require.NoError(t, w.close())
}

func TestUsage(t *testing.T) {
	t.Parallel()
	refused(t, func(t *testing.T) *Config { return tiny(t, "") }, Run, map[string]func(c *Config){
		"--engine oracle":                func(c *Config) { c.Engines = []string{"oracle"} },
		"--engine: nothing":              func(c *Config) { c.Engines = nil },
		"--engine: bbolt is given twice": func(c *Config) { c.Engines = []string{"bbolt", "bbolt"} },
		"--workload idle":                func(c *Config) { c.Workloads = []string{"idle"} },
		"--compression zstd":             func(c *Config) { c.Compressions = []string{"zstd"} },
		"--keys 10":                      func(c *Config) { c.Keys = 10 },
		"--reps 0":                       func(c *Config) { c.Repetitions = 0 },
		"--seconds 0":                    func(c *Config) { c.Seconds = 0 },
		"--cache 1":                      func(c *Config) { c.Store.CacheBytes = 1 },
		"--dir /nothing/here":            func(c *Config) { c.Dir = "/nothing/here" },
		"values of 3 bytes":              func(c *Config) { c.ValueSize = 3 },
		"--large-size 3":                 func(c *Config) { c.Large.ValueSize = 3 },
		"--large-data 9":                 func(c *Config) { c.Large.Data = 9 },
		"--large-values blue":            func(c *Config) { c.Large.Values = "blue" },
		"--minutes 0":                    func(c *Config) { c.Large.Minutes = 0 },
		"--blob-space 1":                 func(c *Config) { c.Store.BlobSpace = 1 },
		"free; choose fewer keys, or":    func(c *Config) { c.Keys, c.ValueSize = maxKeys, 1<<20 },
		"--separate-from -1":             func(c *Config) { c.Store.SeparateFrom = -1 },
		"free; choose fewer keys, or another": func(c *Config) {
			c.Workloads, c.Keys, c.ValueSize = []string{"limit"}, maxKeys, 1<<20 // a store of its own, and no other
		},
	})
}
