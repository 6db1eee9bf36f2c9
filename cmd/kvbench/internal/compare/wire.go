package compare

import "github.com/siftkv/siftkv/cmd/kvbench/internal/engine"

// A task is one line of JSON that the parent sends to a worker. The first is
// always "start"; each is answered before the next is sent.
type task struct {
	Do string `json:"do"`

	Start *startTask `json:"start,omitempty"`
	Open  *openTask  `json:"open,omitempty"`
	Job   *job       `json:"job,omitempty"`
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

// An openTask opens the store, after closing it if it is open.
type openTask struct {
	Settings engine.Settings `json:"settings"`
}

// opening returns the task to open the store.
func opening(s engine.Settings) task { return task{Do: "open", Open: &openTask{Settings: s}} }

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
	Procs   int     `json:"procs,omitempty"`   // GOMAXPROCS, of jobs that change it
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
	CPUSeconds float64 `json:"cpu_seconds,omitempty"`        // of the process meanwhile; 0 with several threads
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
	Heap     int64         `json:"heap_bytes,omitempty"`      // live objects
	BaseHeap int64         `json:"base_heap_bytes,omitempty"` // of them, before the store was opened
	BaseAnon int64         `json:"base_anonymous_bytes,omitempty"`
	Memory   engine.Memory `json:"memory,omitzero"` // as the store counts it

	// Of writes to a store of its own: bytes of keys and values that were written, and that
	// are there.
	Data int64 `json:"data_bytes,omitempty"`
	Live int64 `json:"live_bytes,omitempty"`

	PeakDisk int64       `json:"peak_disk_bytes,omitempty"` // of the store's files at most, since the process began
	Cold     *ColdReads  `json:"cold,omitempty"`
	Tree     *treeSample `json:"tree,omitempty"`
}
