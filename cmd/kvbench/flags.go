package main

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/sweep"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// Each idea has one flag, which is declared here if several commands have it. Names of
// settings are those of cells (cell.Fields).
// Texts that are longer than a line are in texts, under the name of the flag.

type secondsFlag struct {
	Seconds float64 `default:"0.5" placeholder:"S" help:"${seconds}"`
}

// storeFlags are settings that all engines have.
type storeFlags struct {
	Memtable       bench.Size `default:"16MiB" placeholder:"SIZE" help:"Memtable of a store (default ${default})."`
	Block          bench.Size `default:"4096" placeholder:"SIZE" help:"${block}"`
	MaxCompactions int        `default:"2" placeholder:"N" help:"${maxcompactions}"`
}

// settings returns the settings of an engine with a cache and a compression.
func (f *storeFlags) settings(cache bench.Size, compression string) engine.Settings {
	return engine.Settings{
		CacheBytes: int64(cache), MemtableBytes: int64(f.Memtable), BlockBytes: int(f.Block),
		Compression: compression, Compactions: f.MaxCompactions,
	}
}

// dataFlags say what a store holds and in which order it is read.
type dataFlags struct {
	KeySize   int    `default:"16" placeholder:"BYTES" help:"Bytes of a generated key (default ${default})."`
	ValueSize int    `default:"100" placeholder:"BYTES" help:"${valuesize}"`
	Seed      uint64 `default:"1" placeholder:"N" help:"${seed}"`
}

type repsFlag struct {
	Reps int `default:"${repetitions=5}" placeholder:"N" help:"Repetitions, for medians (default ${default})."`
}

type compressionFlag struct {
	Compression string `default:"snappy" placeholder:"NAME" help:"Compression: ${compressions} (default ${default})."`
}

// dirFlag says where stores are made; the command sets the variable room to what they take.
type dirFlag struct {
	Dir string `placeholder:"DIR" help:"Where to make the temporary stores${room}; they are removed at the end${tmp}."`
}

type jsonFlag struct {
	JSON resultFile `name:"json" placeholder:"FILE" help:"${json}"`
}

// rowsFlags name files of a result that is rows.
type rowsFlags struct {
	CSV resultFile `name:"csv" placeholder:"FILE" help:"${csv}"`
	jsonFlag
}

// show returns what prints such a result, and writes its files. Neither keeps the others from being done, nor does an
// error that comes with a result.
func (f *rowsFlags) show(p *program) func(*tidy.Result, error) error { return f.showAs(p, report.Tidy) }

func (f *rowsFlags) showAs(p *program, text func(io.Writer, *tidy.Result) error) func(*tidy.Result, error) error {
	return func(r *tidy.Result, err error) error {
		if r == nil {
			return err
		}
		if f.CSV.IsStandard() {
			text = func(io.Writer, *tidy.Result) error { return nil } // there is nothing else then
		}
		return errors.Join(err, show(p, text, f.JSON)(r, nil), f.CSV.Write(p.stdout, r.WriteCSV))
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

// cellFlags are the settings of cells under the names of cell.Fields, one value each or
// several. What is not given has the default of cell.Default.
type cellFlags struct {
	Engine    []string `placeholder:"NAMES" help:"${cells_engine}"`
	Filter    []string `sep:"none" placeholder:"SPECS" help:"${cells_filter}"`
	Range     []string `placeholder:"SPECS" help:"${cells_range}"`
	Budget    []string `placeholder:"NAMES" help:"${cells_budget}"`
	Shape     []string `placeholder:"NAMES" help:"${cells_shape}"`
	Fill      []string `placeholder:"N" help:"${cells_fill}"`
	Values    []string `placeholder:"KINDS" help:"${cells_values}"`
	Separate  []string `name:"separate-from" placeholder:"SIZES" help:"${cells_separate}"`
	BlobSpace []string `name:"blob-space" placeholder:"RATIOS" help:"${cells_blobspace}"`
	AtCommit  []string `name:"at-commit" placeholder:"NO|YES" help:"${cells_atcommit}"`
	Workload  []string `placeholder:"NAMES" help:"${cells_workload}"`
	Scan      []string `placeholder:"KINDS" help:"${cells_scan}"`
	State     []string `placeholder:"NAMES" help:"${cells_state}"`
	Threads   []string `placeholder:"N" help:"${cells_threads}"`
	rowFlags
}

// rowFlags are those of them that readamp has, too.
type rowFlags struct {
	Compaction  []string `placeholder:"NAMES" help:"Compaction: ${compactions} (default ${style})."`
	Index       []string `placeholder:"SIZES" help:"${cells_index}"`
	Cache       []string `placeholder:"SIZES" help:"Block cache (default 64MiB). Example: --cache 1MiB,8MiB,64MiB."`
	Memtable    []string `placeholder:"SIZES" help:"Memtable (default 16MiB)."`
	Block       []string `placeholder:"SIZES" help:"Data block before compression (default 4096)."`
	Compression []string `placeholder:"NAMES" help:"Compression: none, snappy (default), zstd."`
	Keys        []string `placeholder:"N|FILE" help:"${cells_keys}"`
	KeySize     []string `name:"key-size" placeholder:"BYTES" help:"Bytes of a generated key (default 16)."`
	ValueSize   []string `name:"value-size" placeholder:"BYTES" help:"Bytes of a value (default 100)."`
	DataSeed    []string `name:"data-seed" placeholder:"N" help:"Seed of keys, values and tree (default ${data=1})."`
	Lookups     []string `placeholder:"N" help:"${cells_lookups}"`
	Reps        []string `placeholder:"N" help:"Repetitions (default 5)."`
	Seed        []string `placeholder:"N" help:"Seed of the lookups (default 1)."`
}

func (f *cellFlags) block() sweep.Block {
	f.Filter = specs(f.Filter)
	return blockOf(reflect.ValueOf(*f))
}

func blockOf(v reflect.Value) sweep.Block {
	b := sweep.Block{}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Anonymous {
			maps.Copy(b, blockOf(v.Field(i)))
		} else if given := v.Field(i).Interface().([]string); len(given) > 0 {
			b[cmp.Or(field.Tag.Get("name"), strings.ToLower(field.Name))] = given
		}
	}
	return b
}

// oneEach reports a setting with several values.
func oneEach(b sweep.Block, measures string) error {
	for name, given := range b {
		if len(given) > 1 {
			return bench.Usagef("--%s: %d values are given, and %s; kvbench sweep measures many", name, len(given),
				measures)
		}
	}
	return nil
}

// one returns the cell, if there is one value of each setting.
func (f *cellFlags) one() (cell.Settings, error) {
	b := f.block()
	if err := oneEach(b, "run measures one cell"); err != nil {
		return cell.Settings{}, err
	}
	plan, err := (&sweep.Spec{Settings: b}).Plan()
	if err != nil {
		return cell.Settings{}, err
	}
	return plan.Cells[0], nil
}
