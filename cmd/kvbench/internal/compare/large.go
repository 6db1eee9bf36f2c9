package compare

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
)

// Large says what the stores with large values are.
type Large struct {
	ValueSize int     `json:"value_bytes"`
	Values    string  `json:"values"`     // of LargeValues
	Data      int64   `json:"data_bytes"` // of their keys and values, about
	Minutes   float64 `json:"minutes"`    // of the constant overwrites
}

// What large values are.
const (
	RandomValues = "random" // nothing compresses them
	HalfValues   = "half"   // a compressor reaches about one half
)

// LargeValues lists what Large.Values may be.
var LargeValues = []string{RandomValues, HalfValues}

// Bounds of a Large.
const (
	leastLargeData = 1 << 20
	mostLargeData  = 1 << 40
	mostMinutes    = 24 * 60
)

// LargeEngines lists the engines for which large values make a difference, the one that is
// compared with the others first.
func LargeEngines() []string {
	return slices.DeleteFunc([]string{engine.SiftKVSeparatedName, engine.SiftKVTightName,
		engine.SiftKVCommitName, "siftkv", "pebble",
		engine.PebbleSeparatedName, engine.BadgerLogName, engine.RocksDBName, engine.RocksDBBlobsName, engine.LMDBName},
		func(name string) bool { return !slices.Contains(engine.Peers(), name) })
}

// IsLarge reports whether a workload is one of large values.
func IsLarge(workload string) bool {
	for _, e := range experiments {
		if e.large && slices.Contains(e.phases, workload) {
			return true
		}
	}
	return false
}

func (l *Large) validate() error {
	if !(l.Minutes > 0 && l.Minutes <= mostMinutes) {
		return bench.Usagef("--minutes %v: want more than 0 and up to %d", l.Minutes, mostMinutes)
	}
	return cmp.Or(bench.CheckNames("--large-values", []string{l.Values}, LargeValues), bench.CheckBounds(
		bench.Bound{Flag: "--large-size", Value: int64(l.ValueSize), Low: keys.MinValueSize, High: keys.MaxValueSize},
		bench.Bound{Flag: "--large-data", Value: l.Data, Low: leastLargeData, High: mostLargeData}))
}

// keys returns how many keys there are, some at least.
func (l *Large) keys(keySize int) int {
	return int(min(l.Data/int64(keySize+l.ValueSize), math.MaxInt32))
}

// large loads a store of large values and overwrites them at random; looks up and scans what it
// has then; and overwrites on and on.
func (t *trial) large(ctx context.Context) error {
	s, err := t.load(ctx)
	if err != nil {
		return err
	}
	t.add("large-load", s)
	if err := t.rewrite(ctx, "large-overwrite", job{Kind: "replace", Lookups: overwrites * t.keys}); err != nil {
		return err
	}
	if err := t.ask(ctx, "large-get", job{Kind: "replaced"}); err != nil {
		return err
	}
	if err := t.ask(ctx, "large-scan", job{Kind: "scan"}); err != nil {
		return err
	}
	if t.chosen("large-keys") && engine.ScansKeys(t.name) {
		if err := t.ask(ctx, "large-keys", job{Kind: "scan-keys"}); err != nil {
			return err
		}
	}
	if !t.chosen("large-churn") {
		return nil
	}
	return t.rewrite(ctx, "large-churn", job{Kind: "replace", Seconds: 60 * t.run.config.Large.Minutes})
}
