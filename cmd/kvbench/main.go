// Command kvbench is a laboratory for reads of log-structured stores. It runs the same
// lookups on SiftKV and on other stores and says what each of them cost. docs/bench.md
// has a page for each command:
//
//	kvbench readamp              what a lookup costs, by engine and filter
//	kvbench compare              how fast reads, scans, loads and writes are, by engine
//	kvbench scale                how cost grows with the number of keys
//	kvbench objects              what a store in an object store costs
//	kvbench run                  one experiment
//	kvbench sweep                a matrix of experiments
//	kvbench diff A B             two sets of results
//	kvbench report RESULTS       tables, charts, a page
//	kvbench ycsb                 YCSB, in a closed loop or at a rate
//	kvbench filters              filter families on their own, beside other libraries
//	kvbench trace replay FILE    an application's lookups on any engine and filter
//	kvbench env                  this machine
//
// Standard output carries results, standard error progress and errors. Exit
// statuses: 0 ok, 1 I/O or internal error, 2 usage, 3 a wrong answer or counters
// that do not add up, 4 a threshold is passed, 5 some cells failed, 130 interrupted.
package main

import (
	"os"

	"github.com/siftkv/siftkv/internal/cli"
)

func main() {
	p := program{stdout: os.Stdout, stderr: os.Stderr}
	cli.Main(p.run)
}
