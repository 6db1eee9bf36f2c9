package compare

import (
	"slices"
	"strings"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// A Config says what to compare. Every field is needed but Dir and Argv.
type Config struct {
	Engines      []string // of engine.Peers; the first is compared with all others
	Workloads    []string // of Workloads
	Compressions []string // of engine.Compressions; writes are measured with the first
	Keys         int
	KeySize      int // bytes
	ValueSize    int // bytes
	Repetitions  int
	Loads        int     // repetitions of the load; an engine that is no log-structured store has one
	Seconds      float64 // of each phase, engine and repetition
	Seed         uint64
	Store        engine.Settings // without Compression
	Dir          string          // where a temporary directory is made; empty: the system's
	Argv         []string
	Progress     *progress.Reporter

	// Worker is the command line that runs Serve on standard input and output.
	Worker []string
}

// Compressions lists what every log-structured engine has.
var Compressions = []string{"none", "snappy"}

// validate reports the first field that makes no sense.
func (c *Config) validate() error {
	for _, name := range c.Engines {
		if err := engine.CheckName("--engine", name, engine.Peers()); err != nil {
			return err
		}
	}
	for _, list := range []struct {
		flag           string
		given, allowed []string
	}{
		{"--engine", c.Engines, engine.Peers()},
		{"--workload", c.Workloads, Workloads()},
		{"--compression", c.Compressions, Compressions},
	} {
		if len(list.given) == 0 {
			return bench.Usagef("%s: nothing to measure; choose from %s", list.flag, strings.Join(list.allowed, ", "))
		}
		for i, name := range list.given {
			if !slices.Contains(list.allowed, name) {
				return bench.Usagef("%s %s: choose from %s", list.flag, name, strings.Join(list.allowed, ", "))
			}
			if slices.Contains(list.given[:i], name) {
				return bench.Usagef("%s: %s twice", list.flag, name)
			}
		}
	}
	for _, b := range []struct {
		flag          string
		value, lo, hi int64
	}{
		{"--keys", int64(c.Keys), 1000, 1 << 30},
		{"--reps", int64(c.Repetitions), 1, 1000},
		{"--loads", int64(c.Loads), 1, 100},
		{"--cache", c.Store.CacheBytes, 64 << 10, 1 << 40},
		{"--memtable", c.Store.MemtableBytes, 64 << 10, 1 << 30},
		{"--block", int64(c.Store.BlockBytes), 256, 1 << 20},
		{"--max-compactions", int64(c.Store.Compactions), 1, 64},
	} {
		if b.value < b.lo || b.value > b.hi {
			return bench.Usagef("%s %d: want %d to %d", b.flag, b.value, b.lo, b.hi)
		}
	}
	if c.Seconds <= 0 || c.Seconds > 3600 {
		return bench.Usagef("--seconds %g: want more than 0, up to 3600", c.Seconds)
	}
	_, err := newUniverse(&startTask{Keys: c.Keys, KeySize: c.KeySize, ValueSize: c.ValueSize, Seed: c.Seed})
	return err
}

// dataBytes returns the bytes of all keys and values.
func (c *Config) dataBytes() int64 { return int64(c.Keys) * int64(c.KeySize+c.ValueSize) }
