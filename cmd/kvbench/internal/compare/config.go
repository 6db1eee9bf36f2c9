package compare

import (
	"cmp"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// A Config says what to compare. Every field is needed.
type Config struct {
	Settings
	Setup
}

// Settings are those of a run.
type Settings struct {
	Engines      []string        `json:"engines"`      // of engine.Peers; the first is compared with all others
	Workloads    []string        `json:"workloads"`    // of Workloads
	Compressions []string        `json:"compressions"` // of Compressions; writes are measured with the first
	Keys         int             `json:"keys"`
	KeySize      int             `json:"key_bytes"`
	ValueSize    int             `json:"value_bytes"`
	Repetitions  int             `json:"repetitions"`
	Loads        int             `json:"loads"`   // repetitions of the load; what is no log-structured store has one
	Seconds      float64         `json:"seconds"` // of each phase, engine and repetition
	Seed         uint64          `json:"seed"`
	Store        engine.Settings `json:"store"` // without Compression
	Large        Large           `json:"large"`
}

// Compressions lists what every log-structured engine has.
var Compressions = []string{"none", "snappy"}

// validate reports the first field that makes no sense.
func (c *Config) validate() error {
	if err := checkEngines(c.Engines); err != nil {
		return err
	}
	for _, list := range []struct {
		flag           string
		given, allowed []string
	}{
		{"--engine", c.Engines, engine.Peers()}, {"--workload", c.Workloads, Workloads()},
		{"--compression", c.Compressions, Compressions},
	} {
		if err := bench.CheckNames(list.flag, list.given, list.allowed); err != nil {
			return err
		}
	}
	store := c.Store
	store.Compression = c.Compressions[0]
	return cmp.Or(c.Large.validate(), checkStores([]int{c.Keys}, c.KeySize, c.ValueSize, store),
		bench.CheckSeconds(c.Seconds),
		bench.CheckBounds(
			bench.Bound{Flag: "--reps", Value: int64(c.Repetitions), Low: 1, High: 1000},
			bench.Bound{Flag: "--loads", Value: int64(c.Loads), Low: 1, High: 100}))
}

// dataBytes returns the bytes of all keys and values.
func (c *Config) dataBytes() int64 { return int64(c.Keys) * int64(c.KeySize+c.ValueSize) }
