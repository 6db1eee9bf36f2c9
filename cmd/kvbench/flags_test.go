package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/cli"
)

// parse returns the command line as kvbench understands it.
func parse(t *testing.T, args ...string) (*commands, *kong.Kong) {
	t.Helper()
	var c commands
	parser, err := kong.New(&c, kong.Name("kvbench"), vars(), cli.Helps(helps()), kong.Exit(func(int) {}))
	require.NoError(t, err)
	if len(args) > 0 {
		_, err = parser.Parse(args)
		require.NoError(t, err, "%q", args)
	}
	return &c, parser
}

// ideas has every flag of every command, with what it is about. No two are about the same.
var ideas = map[string]string{
	"engine": "engines", "filter": "filters", "budget": "filter memory", "index": "size of index parts",
	"compaction": "compaction style", "max-compactions": "compactions at a time",
	"shape": "levels", "cache": "cache",
	"cache-share": "cache as a part of the data", "memtable": "memtable", "block": "data block",
	"compression": "compression", "keys": "keys", "key-size": "bytes of a key", "value-size": "bytes of a value",
	"fill": "keys beside a trace's", "data-seed": "seed of the data alone", "seed": "seed", "workload": "workload",
	"state": "cold or warm", "threads": "threads",
	"lookups": "lookups", "probes": "questions to a filter", "reps": "repetitions",
	"loads": "repetitions of the load", "seconds": "time of a workload", "libraries": "other projects' filters",
	"dir": "directory of stores", "out": "directory of results", "json": "result as JSON",
	"html": "page", "title": "title", "format": "form of the text", "spec": "file of a sweep", "force": "run again",
	"plan": "run nothing", "fail-on": "limits", "all": "what did not change",
	"metric": "metrics", "rows": "rows", "columns": "columns", "where": "cells",
	"x": "axis", "log-y": "logarithmic axis", "quiet": "no progress", "progress": "progress", "version": "version",
	"help": "help", "cold": "larger than memory", "memory": "memory limit", "variant": "siftkv's settings",
	"procs": "processors", "goroutines": "goroutines", "young": "files in level 0", "target-file": "size of a file",
	"delay": "delay of a request", "get-price": "price of a read", "put-price": "price of a write",
	"range": "range filters", "scan": "scans between bounds", "ranges": "filters for ranges by themselves",
	"sets": "sets of keys", "csv": "result as CSV",
	"large-size": "bytes of a large value", "large-values": "compressibility of large values",
	"values":     "compressibility of values",
	"at-commit":  "when a value is separated",
	"large-data": "bytes of a store with large values", "minutes": "time of constant overwrites",
	"separate-from": "length of a separated value", "blob-space": "space of separated values",
	"in-memory": "object store in memory", "s3": "object store in a bucket",
}

func TestOneIdeaHasOneName(t *testing.T) {
	t.Parallel()
	names := map[string]string{}
	for name, idea := range ideas {
		require.Empty(t, names[idea], "--%s and --%s are both about %s", name, names[idea], idea)
		names[idea] = name
	}
	_, app := parse(t)
	seen := map[string]string{}
	var check func(n *kong.Node)
	check = func(n *kong.Node) {
		for _, f := range n.Flags {
			seen[f.Name] = ideas[f.Name]
			require.NotEmpty(t, ideas[f.Name], "%s --%s is about something: say what", n.Name, f.Name)
			require.NotEmpty(t, f.Help, f.Name)
			require.NotContains(t, f.Help, "${", f.Name)
			require.Empty(t, f.Aliases, f.Name)
		}
		for _, child := range n.Children {
			check(child)
		}
	}
	check(app.Model.Node)
	require.Equal(t, ideas, seen, "an idea has no flag")
}

func TestEveryCommandCanBeQuiet(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"env", "-q"}, {"-q", "env"}, {"env", "--quiet"}, {"scale", "-q"}, {"filters", "--progress", "none"},
		{"completion", "bash", "-q"}, {"run", "-q"},
	} {
		c, _ := parse(t, args...)
		require.True(t, c.Quiet || c.Progress == "none", "%q", args)
	}
	status, _, stderr := kvbench(t, &program{}, "filters", "--keys", "500", "--probes", "1000", "--reps", "1",
		"--filter", "bloom:10", "--no-libraries", "-q")
	require.Zero(t, status)
	require.Empty(t, stderr)
}

func TestCellFlagsAreSettings(t *testing.T) {
	t.Parallel()
	var f cellFlags
	n := 0
	for _, flags := range []any{&f, &f.rowFlags} {
		for _, field := range reflect.ValueOf(flags).Elem().Fields() {
			if field.Kind() == reflect.Slice {
				field.Set(reflect.ValueOf([]string{"x"}))
				n++
			}
		}
	}
	for name := range f.block() {
		require.NotEmpty(t, ideas[name])
	}
	require.Len(t, f.block(), n)
}

func TestOneSeedOfReadampIsThatOfItsDataToo(t *testing.T) {
	t.Parallel()
	for want, args := range map[[2]string][]string{
		{"7", "7"}: {"--seed", "7"}, {"7", "8"}: {"--seed", "7", "--data-seed", "8"}, {"", "8"}: {"--data-seed", "8"},
		{"", ""}: {},
	} {
		c, _ := parse(t, append([]string{"readamp"}, args...)...)
		b := c.Readamp.settings()
		require.Equal(t, want, [2]string{strings.Join(b["seed"], ""), strings.Join(b["data-seed"], "")}, "%q", args)
	}
	for command, text := range map[string]string{"readamp": "(default that of --seed)", "run": "(default 1)"} {
		_, stdout, _ := kvbench(t, &program{}, command, "--help")
		require.Contains(t, strings.Join(strings.Fields(stdout), " "), "Seed of keys, values and tree "+text)
	}
}
