package compare

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/internal/turns"
)

// A child is a worker process as its parent sees it.
type child struct {
	name    string
	cmd     *exec.Cmd
	tasks   io.WriteCloser
	encode  *json.Encoder
	answers *json.Decoder
	stderr  *tail
	gone    error // why it answers no more
}

// startChild runs argv as a worker that has a store. The process is killed when ctx ends, and ends by
// itself when this process does.
func startChild(ctx context.Context, argv []string, start *startTask) (*child, error) {
	name := start.Engine
	c := &child{name: name, cmd: exec.CommandContext(ctx, argv[0], argv[1:]...), stderr: &tail{}}
	c.cmd.Stderr = c.stderr
	c.cmd.Env = os.Environ()
	var err error
	if c.tasks, err = c.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c.encode, c.answers = json.NewEncoder(c.tasks), json.NewDecoder(out)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: start %s: %w", name, argv[0], err)
	}
	if _, err := c.do(ctx, task{Do: "start", Start: start}); err != nil {
		c.kill()
		return nil, err
	}
	return c, nil
}

func (c *child) do(ctx context.Context, t task) (*Sample, error) {
	if c.gone != nil {
		return nil, c.gone
	}
	var a answer
	err := c.encode.Encode(t)
	if err == nil {
		err = c.answers.Decode(&a)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		c.gone = c.died(t)
		return nil, c.gone
	case a.Wrong:
		return nil, fmt.Errorf("%s: %w", c.name, wrongAnswer(a.Error))
	case a.Error != "":
		return nil, fmt.Errorf("%s: %s", c.name, a.Error)
	}
	return a.Sample, nil
}

// steps sends tasks one after the other, and returns what each measured.
func (c *child) steps(ctx context.Context, tasks ...task) ([]*Sample, error) {
	var samples []*Sample
	for _, t := range tasks {
		sample, err := c.do(ctx, t)
		if err != nil {
			return nil, err
		}
		samples = append(samples, sample)
	}
	return samples, nil
}

// inProcess carries out tasks on a store in a process that ends with them.
func inProcess(ctx context.Context, worker []string, start *startTask, tasks []task) ([]*Sample, error) {
	c, err := startChild(ctx, worker, start)
	if err != nil {
		return nil, err
	}
	defer c.kill()
	samples, err := c.steps(ctx, tasks...)
	if err != nil {
		return nil, err
	}
	return samples, c.stop(ctx)
}

// wrongAnswer is the text of a worker's error that matches bench.ErrWrongAnswer.
type wrongAnswer string

func (w wrongAnswer) Error() string { return string(w) }
func (w wrongAnswer) Unwrap() error { return bench.ErrWrongAnswer }

// died says how a worker ended that should have answered.
func (c *child) died(t task) error {
	_ = c.tasks.Close()
	err := c.cmd.Wait()
	what := t.Do
	if t.Job != nil {
		what = t.Job.Kind
	}
	state := "ended"
	if err != nil {
		state = err.Error()
	}
	text := fmt.Sprintf("%s: its process died during %q (%s)", c.name, what, state)
	if last := c.stderr.String(); last != "" {
		text += "; its last words:\n" + last
	}
	return errors.New(text)
}

// stop closes the store and ends the process. After an error the process may still
// be there, for kill.
func (c *child) stop(ctx context.Context) error {
	if _, err := c.do(ctx, task{Do: "close"}); err != nil {
		return err
	}
	c.gone = fmt.Errorf("%s: stopped", c.name)
	_ = c.tasks.Close()
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: its process ended: %w", c.name, err)
	}
	return nil
}

func (c *child) kill() {
	if c.gone == nil {
		c.gone = fmt.Errorf("%s: killed", c.name)
		_ = c.cmd.Process.Kill()
		_ = c.tasks.Close()
		_ = c.cmd.Wait()
	}
}

// tailBytes is how much of what a worker says on standard error is kept.
const tailBytes = 4 << 10

// A tail keeps the end of what is written to it.
type tail struct{ last []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.last = append(t.last, p...)
	if extra := len(t.last) - tailBytes; extra > 0 {
		t.last = append(t.last[:0], t.last[extra:]...)
	}
	return len(p), nil
}

// String returns whole lines, the first of which may be cut.
func (t *tail) String() string { return strings.TrimSpace(string(bytes.TrimSpace(t.last))) }

// A task is one line of JSON that the parent sends to a worker. The first is
// always "start"; each is answered before the next is sent.
type task struct {
	Do string `json:"do"`

	Start *startTask       `json:"start,omitempty"`
	Open  *engine.Settings `json:"open,omitempty"` // opens the store, after closing it if it is open
	Job   *job             `json:"job,omitempty"`
}

// A startTask says which store a worker has, and what is in it.
type startTask struct {
	Engine    string `json:"engine"`
	Dir       []byte `json:"dir"` // a name of a file has any bytes
	Keys      int    `json:"keys"`
	KeySize   int    `json:"key_size"`
	ValueSize int    `json:"value_size"`
	Seed      uint64 `json:"seed"`
	Chill     bool   `json:"chill,omitempty"`  // keep the files out of the page cache while they are written
	Random    bool   `json:"random,omitempty"` // values are such that nothing compresses them
	Watch     bool   `json:"watch,omitempty"`  // note what the files take while they are written
}

func opening(s engine.Settings) task { return task{Do: "open", Open: &s} }

// lookingUp returns the task to look keys up for a time. Passes of different numbers ask
// for different keys.
func lookingUp(kind string, seconds float64, pass int) task {
	return task{Do: "job", Job: &job{Kind: kind, Seconds: seconds, Pass: uint64(pass)}}
}

// A job is something to do again and again for a time, checked and measured.
type job struct {
	Kind    string  `json:"kind"` // see jobs
	Seconds float64 `json:"seconds,omitempty"`
	Threads int     `json:"threads,omitempty"`
	Procs   int     `json:"procs,omitempty"`   // GOMAXPROCS, of a crowd
	Limit   int     `json:"limit,omitempty"`   // entries of a scan; 0: all
	Lookups int     `json:"lookups,omitempty"` // how many operations, of jobs that end with them
	Pass    uint64  `json:"pass"`              // numbers the repetition: other passes ask for other keys
}

// An answer is one line of JSON that a worker sends back.
type answer struct {
	Error  string  `json:"error,omitempty"`
	Wrong  bool    `json:"wrong,omitempty"` // the error is a wrong answer of the engine
	Sample *Sample `json:"sample,omitempty"`
}

// A Sample is what one worker measured at a time.
type Sample struct {
	Operations int64   `json:"operations"`
	Seconds    float64 `json:"seconds"`                      // of wall time, without generating long batches
	PerSecond  float64 `json:"per_second"`                   // operations, summed over threads
	CPUSeconds float64 `json:"cpu_seconds,omitempty"`        // of the process meanwhile; 0: not measured
	MutexWait  float64 `json:"mutex_wait_seconds,omitempty"` // of all goroutines, for jobs that measure it
	Allocs     float64 `json:"allocs_per_op"`
	AllocBytes float64 `json:"alloc_bytes_per_op"`

	// Times of single operations, in nanoseconds, for jobs that time each.
	P50  int64 `json:"p50_ns,omitempty"`
	P99  int64 `json:"p99_ns,omitempty"`
	P999 int64 `json:"p99_9_ns,omitempty"`
	Max  int64 `json:"max_ns,omitempty"`
	// Batches written meanwhile, and what the longest took.
	Batches      int64 `json:"batches,omitempty"`
	LongestBatch int64 `json:"longest_batch_ns,omitempty"`

	// Sizes, for tasks that ask for them, in bytes.
	Written  int64 `json:"written_bytes,omitempty"`   // handed to the kernel since the process began
	OnDisk   int64 `json:"on_disk_bytes,omitempty"`   // of the store's files, as allocated
	Resident int64 `json:"resident_bytes,omitempty"`  // of the process
	Peak     int64 `json:"peak_bytes,omitempty"`      // resident, at most, since the process began
	Anon     int64 `json:"anonymous_bytes,omitempty"` // of those, not backed by files
	Base     int64 `json:"base_bytes,omitempty"`      // resident before the store was opened
	Files    int   `json:"files,omitempty"`

	// What is left after a collection of garbage, in bytes.
	Heap     int64 `json:"heap_bytes,omitempty"`      // live objects
	BaseHeap int64 `json:"base_heap_bytes,omitempty"` // of them, before the store was opened
	BaseAnon int64 `json:"base_anonymous_bytes,omitempty"`

	// Of writes to a store of its own: bytes of keys and values that were written, and that
	// are there.
	Data int64 `json:"data_bytes,omitempty"`
	Live int64 `json:"live_bytes,omitempty"`

	// Of the store's files at most, since the process began.
	PeakDisk int64 `json:"peak_disk_bytes,omitempty"`

	Lookups *engine.Tally        `json:"lookups,omitempty"` // what cold lookups did in files
	Device  *measure.DeviceReads `json:"device,omitempty"`
	Tree    *treeSample          `json:"tree,omitempty"`
}

// A worker is the child process that has one store of one engine.
type worker struct {
	wrap     func(string, engine.Live) engine.Live
	start    *startTask
	keyspace *keyspace
	popular  *keys.Zipf
	store    engine.Live // nil while it is not open
	settings engine.Settings
	base     Sample   // the process before the store was opened
	checksum uint64   // sum of the first words of all loaded values
	inserts  int      // records after the loaded ones that were drawn by YCSB
	inserted int      // of them, those that are there
	hole     hole     // the loaded keys that were deleted
	totals   []uint64 // of counters, by record
	peakDisk int64    // of the store's files, where they are watched
	versions []uint32 // how often each record was replaced; nil: never
	replaced uint64   // how many draws of records to replace were made
}

// Serve answers tasks read from in, one line of JSON each, on out, until in ends:
// when the parent closes it, or is no longer there. It then ends the process, even
// if a task is under way, so that no worker outlives its parent. wrap, if set, stands
// between the worker and the store it opens.
func Serve(ctx context.Context, in io.Reader, out io.Writer,
	wrap func(engine string, s engine.Live) engine.Live) error {
	w := &worker{wrap: wrap}
	tasks := make(chan task)
	go func() {
		lines := json.NewDecoder(bufio.NewReader(in))
		for {
			var t task
			if err := lines.Decode(&t); err != nil {
				os.Exit(bench.StatusOK)
			}
			tasks <- t
		}
	}()
	reply := json.NewEncoder(out)
	for t := range tasks {
		sample, err := w.do(ctx, t)
		a := answer{Sample: sample}
		if err != nil {
			a.Error, a.Wrong = err.Error(), errors.Is(err, bench.ErrWrongAnswer)
		}
		if err := reply.Encode(a); err != nil {
			return fmt.Errorf("answer the parent: %w", err)
		}
	}
	return nil
}

func (w *worker) do(ctx context.Context, t task) (*Sample, error) {
	if w.keyspace == nil && t.Do != "start" {
		return nil, fmt.Errorf("task %q before the start", t.Do)
	}
	switch t.Do {
	case "start":
		return w.begin(t.Start)
	case "open":
		return w.open(t.Open)
	case "close":
		return nil, w.close()
	case "load":
		return w.watched(func() (*Sample, error) { return w.load(ctx) })
	case "calm":
		return w.watched(func() (*Sample, error) { return w.calm(ctx) })
	case "mark":
		w.peakDisk = 0
		return &Sample{}, nil
	case "settle":
		return w.watched(func() (*Sample, error) {
			return w.timed(func() error { return w.store.Settle(ctx) })
		})
	case "drop":
		return &Sample{}, w.drop()
	case "tree":
		return w.tree()
	case "resettle":
		return w.resettle(ctx)
	case "warm":
		return w.warm(ctx)
	case "rest":
		return &Sample{}, w.rest(ctx)
	case "pinned":
		return w.pinned()
	case "sizes":
		return w.sizes()
	case "job":
		return w.job(ctx, t.Job)
	}
	return nil, fmt.Errorf("no task named %q", t.Do)
}

func (w *worker) begin(s *startTask) (*Sample, error) {
	u, err := newKeyspace(s)
	if err != nil {
		return nil, err
	}
	w.start, w.keyspace, w.popular = s, u, keys.NewZipf(u.n, keys.Theta)
	return &Sample{}, nil
}

func (w *worker) open(o *engine.Settings) (*Sample, error) {
	if err := w.close(); err != nil {
		return nil, err
	}
	w.settings = *o
	if w.base.Resident == 0 {
		w.base = collected()
	}
	return w.timed(func() error {
		store, err := engine.Open(w.start.Engine, string(w.start.Dir), *o)
		if err != nil {
			return err
		}
		if w.wrap != nil {
			store = w.wrap(w.start.Engine, store)
		}
		w.store = store
		return nil
	})
}

func (w *worker) close() error {
	if w.store == nil {
		return nil
	}
	store := w.store
	w.store = nil
	return store.Close()
}

// processorTime returns the processor time of the process; 0 on platforms that do not measure it, where no time of a
// clock stands in for it.
func processorTime() time.Duration {
	if !turns.ProcessorTimeMeasured {
		return 0
	}
	return turns.ProcessorTime()
}

func (w *worker) timed(f func() error) (*Sample, error) {
	cpu, start := processorTime(), time.Now()
	if err := f(); err != nil {
		return nil, err
	}
	s := &Sample{Seconds: time.Since(start).Seconds(), CPUSeconds: (processorTime() - cpu).Seconds()}
	return s.of(1), nil
}

func (w *worker) sizes() (*Sample, error) {
	s := &Sample{Base: w.base.Resident, Written: measure.Written(), PeakDisk: w.peakDisk}
	s.Resident, s.Anon, s.Peak = measure.Resident()
	var err error
	s.OnDisk, s.Files, err = measure.OnDisk(string(w.start.Dir))
	return s, err
}

// resettle settles a store that has come back with more than one level: Badger
// flushes its memtable when it is closed.
func (w *worker) resettle(ctx context.Context) (*Sample, error) {
	shape, err := w.store.Shape()
	if err != nil || shape.Settled() {
		return &Sample{}, err
	}
	return w.timed(func() error { return w.store.Settle(ctx) })
}

// collected measures the process without garbage.
func collected() Sample {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s := Sample{Heap: int64(m.HeapAlloc)}
	s.Resident, s.Anon, s.Peak = measure.Resident()
	return s
}

func (w *worker) pinned() (*Sample, error) {
	s := collected()
	s.Base, s.BaseHeap, s.BaseAnon = w.base.Resident, w.base.Heap, w.base.Anon
	about, err := w.tree()
	if err != nil {
		return nil, err
	}
	s.Tree = about.Tree
	s.OnDisk, s.Files, err = measure.OnDisk(string(w.start.Dir))
	return &s, err
}
