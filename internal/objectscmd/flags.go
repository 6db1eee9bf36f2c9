package objectscmd

import (
	"slices"
	"strings"
)

// Flags that other commands of kvbench have too. Texts that are longer than a line are in Texts, under the name of the
// flag.

// DataFlags say what a store holds and in which order it is read.
type DataFlags struct {
	KeySize   int    `default:"16" placeholder:"BYTES" help:"Bytes of a generated key (default ${default})."`
	ValueSize int    `default:"100" placeholder:"BYTES" help:"${valuesize}"`
	Seed      uint64 `default:"1" placeholder:"N" help:"${seed}"`
}

// RepsFlag says how often something is measured.
type RepsFlag struct {
	Reps int `default:"${repetitions=5}" placeholder:"N" help:"Repetitions, for medians (default ${default})."`
}

// CompressionFlag is for stores of one compression.
type CompressionFlag struct {
	Compression string `default:"snappy" placeholder:"NAME" help:"Compression: ${compressions} (default ${default})."`
}

// DirFlag says where stores are made; the command sets the variable room to what they take.
type DirFlag struct {
	Dir string `placeholder:"DIR" help:"Where to make the temporary stores${room}; they are removed at the end${tmp}."`
}

// JSONFlag names the file of a result.
type JSONFlag struct {
	JSON ResultFile `name:"json" placeholder:"FILE" help:"${json}"`
}

// Specs splits filters at spaces and semicolons, and at commas that begin another
// filter and not another parameter of one.
func Specs(texts []string) []string {
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
