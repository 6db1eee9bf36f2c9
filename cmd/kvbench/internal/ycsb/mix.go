// Package ycsb runs the core workloads of YCSB (B. Cooper et al., "Benchmarking cloud
// serving systems with YCSB", SoCC 2010, and workloads/workload[a-f] of its source),
// and reads of absent keys, which YCSB lacks, in a closed loop or at a rate.
package ycsb

// A Verb is what one operation does.
type Verb uint8

// Verbs.
const (
	Read Verb = iota
	Update
	Insert
	Scan
	Modify // read-modify-write
	Absent // a read of a key that is not there
	verbs
)

// String returns the verb's name in reports.
func (v Verb) String() string {
	return [verbs]string{"read", "update", "insert", "scan", "read-modify-write", "absent read"}[v]
}

// A Mix is a workload: a first verb with its share, another for the rest, and the
// popularity of records. Scans have 1 to MaxScan records, each number as likely as any
// other.
type Mix struct {
	First, Other Verb
	Share        float64 // of First
	Latest       bool    // popular is what was inserted last; else some records anywhere
}

// MaxScan is the most records that a scan has.
const MaxScan = 100

// Mixes are the workloads by their letters, and absent.
var Mixes = map[string]Mix{
	"a":      {First: Read, Share: 0.5, Other: Update},
	"b":      {First: Read, Share: 0.95, Other: Update},
	"c":      {First: Read, Share: 1},
	"d":      {First: Read, Share: 0.95, Other: Insert, Latest: true},
	"e":      {First: Scan, Share: 0.95, Other: Insert},
	"f":      {First: Read, Share: 0.5, Other: Modify},
	"absent": {First: Absent, Share: 1},
}

// Names lists the workloads in the order of reports.
var Names = []string{"a", "b", "c", "d", "e", "f", "absent"}
