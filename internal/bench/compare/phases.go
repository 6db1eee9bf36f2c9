package compare

import "slices"

// A Phase is one workload as every engine is put through it.
type Phase struct {
	Name  string `json:"name"`  // as given to --workload
	Title string `json:"title"` // as in the report
	Unit  string `json:"unit"`  // of an operation

	stage stage
	job   job
}

// A stage is a state of the stores that several phases share.
type stage int

// Stages in the order in which a run goes through them.
const (
	loading     stage = iota // the load itself
	behind                   // loaded, compaction not done
	usual                    // settled, the common settings
	smallCache               // settled, a cache of a tenth of the data
	largeCache               // settled, a cache of twice the data, every block in it
	stageNumber              // how many there are
)

// phases lists all workloads in the order of the report.
var phases = []Phase{
	{Name: "load", Title: "load, batches of 100, to settled", Unit: "key", stage: loading},
	{Name: "absent-behind", Title: "absent, right after the load", Unit: "get", stage: behind, job: job{Kind: "absent", Threads: 1}},
	{Name: "absent", Title: "absent", Unit: "get", stage: usual, job: job{Kind: "absent", Threads: 1}},
	{Name: "absent-2", Title: "absent, 2 threads", Unit: "get", stage: usual, job: job{Kind: "absent", Threads: 2}},
	{Name: "existing", Title: "existing", Unit: "get", stage: usual, job: job{Kind: "existing", Threads: 1}},
	{Name: "existing-cached", Title: "existing, everything cached", Unit: "get", stage: largeCache, job: job{Kind: "existing", Threads: 1}},
	{Name: "existing-small", Title: "existing, cache a tenth", Unit: "get", stage: smallCache, job: job{Kind: "existing", Threads: 1}},
	{Name: "zipf", Title: "zipfian 0.99", Unit: "get", stage: usual, job: job{Kind: "zipfian", Threads: 1}},
	{Name: "scan-full", Title: "full scan", Unit: "entry", stage: usual, job: job{Kind: "scan"}},
	{Name: "scan-10", Title: "scan of 10", Unit: "scan", stage: usual, job: job{Kind: "scan", Limit: 10}},
	{Name: "scan-100", Title: "scan of 100", Unit: "scan", stage: usual, job: job{Kind: "scan", Limit: 100}},
}

// Workloads lists the names of all phases.
func Workloads() []string {
	names := make([]string, len(phases))
	for i, p := range phases {
		names[i] = p.Name
	}
	return names
}

// place returns the place of a phase in the report.
func place(name string) int {
	return slices.IndexFunc(phases, func(p Phase) bool { return p.Name == name })
}
