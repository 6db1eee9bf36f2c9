package compare

// A Phase is one workload as every engine is put through it.
type Phase struct {
	Name  string // as given to --workload
	Title string // as in the report
	Unit  string // of an operation; empty: its figures are all there is

	stage stage
	job   job
}

// A stage is a state of the stores that several phases share.
type stage int

// Stages in the order in which a run goes through them. From fresh on they run with
// the first compression only.
const (
	loading    stage = iota // the load itself
	unsettled               // loaded, compaction not done
	usual                   // settled, the common settings
	smallCache              // settled, a cache of a tenth of the data
	largeCache              // settled, a cache of twice the data, every block in it
	fresh                   // settled, a process that has just begun
	soon                    // written to, no waiting
	withOS                  // written to, each write with the operating system when it returns
	durable                 // written to by several goroutines, each write on disk when it returns
	stageEnd
	ownStore // a store of its own, see experiments
)

// writers is the number of goroutines of the durable stage.
const writers = 16

// phases lists all workloads in the order of the report.
var phases = []Phase{
	{Name: "load", Title: "load, batches of 100, to settled", Unit: "key", stage: loading},
	{Name: "absent-behind", Title: "absent, right after the load", Unit: "get", stage: unsettled,
		job: job{Kind: "absent"}},
	{Name: "absent", Title: "absent", Unit: "get", stage: usual, job: job{Kind: "absent"}},
	{Name: "absent-2", Title: "absent, 2 threads", Unit: "get", stage: usual, job: job{Kind: "absent", Threads: 2}},
	{Name: "existing", Title: "existing", Unit: "get", stage: usual, job: job{Kind: "existing"}},
	{Name: "existing-cached", Title: "existing, everything cached", Unit: "get", stage: largeCache,
		job: job{Kind: "existing"}},
	{Name: "existing-small", Title: "existing, cache a tenth", Unit: "get", stage: smallCache,
		job: job{Kind: "existing"}},
	{Name: "zipf", Title: "zipfian 0.99", Unit: "get", stage: usual, job: job{Kind: "zipfian"}},
	{Name: "scan-full", Title: "full scan", Unit: "entry", stage: usual, job: job{Kind: "scan"}},
	{Name: "scan-10", Title: "scan of 10", Unit: "scan", stage: usual, job: job{Kind: "scan", Limit: 10}},
	{Name: "scan-100", Title: "scan of 100", Unit: "scan", stage: usual, job: job{Kind: "scan", Limit: 100}},
	{Name: "open", Title: "open the store", Unit: "open", stage: fresh},
	{Name: "memory", Title: "memory after lookups", stage: fresh},
	{Name: "set", Title: "single writes, no sync", Unit: "set", stage: withOS, job: job{Kind: "set"}},
	{Name: "set-soon", Title: "single writes, no sync, with the OS later", Unit: "set", stage: soon,
		job: job{Kind: "set"}},
	{Name: "set-sync", Title: "single writes, 16 goroutines, sync", Unit: "set", stage: durable,
		job: job{Kind: "set", Threads: writers}},
	{Name: "ycsb-a", Title: "YCSB A: half reads, half updates", Unit: "op", stage: soon, job: job{Kind: "ycsb-a"}},
	{Name: "ycsb-b", Title: "YCSB B: 95 % reads, updates", Unit: "op", stage: soon, job: job{Kind: "ycsb-b"}},
	{Name: "ycsb-c", Title: "YCSB C: reads", Unit: "op", stage: soon, job: job{Kind: "ycsb-c"}},
	{Name: "ycsb-d", Title: "YCSB D: 95 % reads of the latest, inserts", Unit: "op", stage: soon,
		job: job{Kind: "ycsb-d"}},
	{Name: "ycsb-e", Title: "YCSB E: 95 % scans, inserts", Unit: "op", stage: soon, job: job{Kind: "ycsb-e"}},
	{Name: "ycsb-f", Title: "YCSB F: half reads, half read-modify-writes", Unit: "op", stage: soon,
		job: job{Kind: "ycsb-f"}},
	{Name: "heavy", Title: "existing, during heavy writes", Unit: "get", stage: soon, job: job{Kind: "heavy"}},
	{Name: "large-load", Title: "load, large values, to calm", Unit: "key", stage: ownStore},
	{Name: "large-overwrite", Title: "overwrites, large values, to calm", Unit: "key", stage: ownStore},
	{Name: "large-get", Title: "existing, large values, overwritten", Unit: "get", stage: ownStore},
	{Name: "large-scan", Title: "full scan, large values, overwritten", Unit: "entry", stage: ownStore},
	{Name: "large-keys", Title: "full scan of keys alone, large values", Unit: "entry", stage: ownStore},
	{Name: "large-churn", Title: "constant overwrites, large values", Unit: "key", stage: ownStore},
	{Name: "overwrite", Title: "overwrites, values of 1 KiB, to calm", Unit: "key", stage: ownStore},
	{Name: "delete", Title: "deletes of 9 keys in 10", Unit: "key", stage: ownStore},
	{Name: "deleted-scan", Title: "scan of 10 after deletes", Unit: "scan", stage: ownStore},
	{Name: "deleted-get", Title: "deleted keys", Unit: "get", stage: ownStore},
	{Name: "delete-range", Title: "range deletes, 10 keys in 20", Unit: "range", stage: ownStore},
	{Name: "deleted-range-scan", Title: "scan of 10 after range deletes", Unit: "scan", stage: ownStore},
	{Name: "deleted-range-get", Title: "keys of deleted ranges", Unit: "get", stage: ownStore},
	{Name: "counter", Title: "additions to counters", Unit: "add", stage: ownStore},
	{Name: "counter-get", Title: "counters after 50 additions each", Unit: "get", stage: ownStore},
	{Name: "limit", Title: "memory under a limit", stage: ownStore},
}

// heavySeconds is how much longer than others the phase with heavy writes is: flushes
// and compactions must happen in it.
const heavySeconds = 6

// writes reports whether a stage changes the stores.
func (s stage) writes() bool { return s >= soon }

// Workloads lists the names of all phases.
func Workloads() []string {
	names := make([]string, len(phases))
	for i, p := range phases {
		names[i] = p.Name
	}
	return names
}

// Phases returns all workloads in the order of the report.
func Phases() []Phase { return phases }
