package main

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// Each idea has one flag, which is declared here if several commands have it. Names of
// settings are those of cells (cell.Fields).
// Texts that are longer than a line are in texts, under the name of the flag.

// secondsFlag bounds a workload by time.
type secondsFlag struct {
	Seconds float64 `default:"0.5" placeholder:"S" help:"${seconds}"`
}

// cacheFlag is the block cache.
type cacheFlag struct {
	Cache bench.Size `default:"64MiB" placeholder:"SIZE" help:"Block cache of each store (default ${default})."`
}

// storeFlags are settings that all engines have.
type storeFlags struct {
	Memtable       bench.Size `default:"16MiB" placeholder:"SIZE" help:"Memtable of a store (default ${default})."`
	Block          bench.Size `default:"4096" placeholder:"SIZE" help:"${block}"`
	MaxCompactions int        `default:"2" placeholder:"N" help:"${maxcompactions}"`
	SiftkvSpace    int        `placeholder:"PERCENT" help:"Space that SiftKV may take, of what is live (130)."`
}

// settings returns the settings of an engine with a cache and a compression.
func (f *storeFlags) settings(cache bench.Size, compression string) engine.Settings {
	return engine.Settings{
		CacheBytes: int64(cache), MemtableBytes: int64(f.Memtable), BlockBytes: int(f.Block),
		Compression: compression, Compactions: f.MaxCompactions, SpacePercent: f.SiftkvSpace,
	}
}

// dataFlags say what a store holds and in which order it is read.
type dataFlags struct {
	KeySize   int    `default:"16" placeholder:"BYTES" help:"Bytes of a generated key (default ${default})."`
	ValueSize int    `default:"100" placeholder:"BYTES" help:"${valuesize}"`
	Seed      uint64 `default:"1" placeholder:"N" help:"${seed}"`
}

// repsFlag says how often something is measured.
type repsFlag struct {
	Reps int `default:"${repetitions=5}" placeholder:"N" help:"Repetitions, for medians (default ${default})."`
}

// compressionFlag is for stores of one compression.
type compressionFlag struct {
	Compression string `default:"snappy" placeholder:"NAME" help:"Compression: ${compressions} (default ${default})."`
}

// dirFlag says where stores are made; the command sets the variable room to what they take.
type dirFlag struct {
	Dir string `placeholder:"DIR" help:"Where to make the temporary stores${room}; they are removed at the end${tmp}."`
}

// jsonFlag names the file of a result.
type jsonFlag struct {
	JSON resultFile `name:"json" placeholder:"FILE" help:"${json}"`
}

// rowsFlags name files of a result that is rows.
type rowsFlags struct {
	CSV resultFile `name:"csv" placeholder:"FILE" help:"${csv}"`
	jsonFlag
}

// show returns what prints such a result, and writes its files. Neither keeps the others from being done.
func (f *rowsFlags) show(p *program) func(*tidy.Result, error) error {
	return func(r *tidy.Result, err error) error {
		if err != nil {
			return err
		}
		text := report.Tidy
		if f.CSV.IsStandard() {
			text = func(io.Writer, *tidy.Result) error { return nil } // there is nothing else then
		}
		return errors.Join(show(p, text, f.JSON)(r, nil), f.CSV.Write(p.stdout, r.WriteCSV))
	}
}

// specs splits filters at spaces and semicolons, and at commas that begin another
// filter and not another parameter of one.
func specs(texts []string) []string {
	var out []string
	for _, text := range texts {
		for _, field := range strings.FieldsFunc(text, func(r rune) bool { return r == ';' || r == ' ' || r == '\t' }) {
			for part := range strings.SplitSeq(field, ",") {
				last := len(out) - 1
				parameter := part == "semisort" || part != "" && part[0] >= '0' && part[0] <= '9'
				if parameter && last >= 0 && strings.Contains(out[last], ":") {
					out[last] += "," + part
					continue
				}
				out = append(out, part)
			}
		}
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}
