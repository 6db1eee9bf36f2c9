package engine

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/pebblefilter"
	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/keys"
)

// ErrUnsupported marks settings that are right each by itself, but that an engine does
// not have together. A sweep leaves such cells out.
var ErrUnsupported = errors.New("unsupported")

// Unsupported returns an error that matches both ErrUnsupported and bench.ErrUsage.
func Unsupported(format string, args ...any) error {
	return unsupportedError{bench.Usagef(format, args...)}
}

// Variants lists the names that NewVariant accepts.
func Variants() []string {
	names := []string{"null", "siftkv", "pebble", "pebble-iterator", "badger", "goleveldb", "bbolt"}
	if hasRocksDB {
		names = append(names, RocksDBName)
	}
	return names
}

// ownPrefix begins the name of an engine's own filter, with bits per key.
const ownPrefix = "own:"

// A Variant is an engine with a filter and a way to look keys up.
type Variant struct {
	Engine string // of Variants
	Filter string // canonical
	Access Access
	Null   bool // stores nothing
	// Policy is nil if the filter is not of this project, or none. The oracle has one for
	// theory only: each store has its own, see PolicyIn.
	Policy filterpolicy.Policy

	open  func(dir string, s Settings, t Tree) (Store, error)
	own   float64 // rate of the engine's own filter; 0: not known
	bits  float64 // of the engine's own filter
	least int     // keys of a file for which these hold
}

// Open opens or creates the store of a variant.
func (v *Variant) Open(dir string, s Settings, t Tree) (Store, error) { return v.open(dir, s, t) }

// Expected returns what theory says of the filter of a file, and false if it says
// nothing.
func (v *Variant) Expected(keysPerFile int) (bitsPerKey, rate float64, ok bool) {
	switch {
	case v.Filter == OracleFilter:
		return 0, 0, true
	case v.Policy != nil:
		e := filterpolicy.Expected(v.Policy, keysPerFile)
		return e.BitsPerKey, e.FPR, true
	case v.own > 0 && keysPerFile >= v.least:
		return v.bits, v.own, true
	}
	return 0, 0, false
}

// NewVariant returns an engine with a filter: none, oracle, a spec of this project's
// filters, or own:BITS for the engine's own. The values are what null answers with.
func NewVariant(engine, filter string, v keys.Values) (*Variant, error) {
	if err := CheckName("engine", engine, Variants()); err != nil {
		return nil, err
	}
	out := &Variant{Engine: engine, Filter: filter, Access: Get}
	policy, err := filterOf(filter)
	if err != nil {
		return nil, err
	}
	if policy != nil {
		out.Filter = policy.String()
		if policy.Name() != "none" {
			out.Policy = policy
		}
	}
	switch engine {
	case "null":
		out.Null, out.open = true, func(string, Settings, Tree) (Store, error) { return NewNull(v), nil }
		if out.Filter != "none" {
			return nil, Unsupported("filter %s: null has none", filter)
		}
	case "siftkv":
		if policy == nil {
			return nil, Unsupported("filter %s: siftkv has no filters but those of this project, such as bloom:10",
				filter)
		}
		out.open = func(dir string, s Settings, t Tree) (Store, error) {
			return OpenSiftKVTree(dir, s, PolicyIn(policy, dir), t)
		}
	case "pebble", "pebble-iterator":
		if engine == "pebble-iterator" {
			out.Access = Iterator
		}
		out.pebble(policy)
	case "badger", "goleveldb", "bbolt":
		return out, out.peer()
	case RocksDBName:
		return out, out.rocksDB()
	}
	return out, nil
}

// peer makes a variant one of the engines whose filter is fixed.
func (v *Variant) peer() error {
	own := map[string]string{"badger": ownPrefix + "10", "goleveldb": ownPrefix + "10", "bbolt": "none"}[v.Engine]
	if v.Filter != own {
		return Unsupported("filter %s: %s has %s only", v.Filter, v.Engine, own)
	}
	v.open = func(dir string, s Settings, _ Tree) (Store, error) { return Open(v.Engine, dir, s) }
	return nil
}

// filterOf returns the policy of a filter's name, nil for an engine's own.
func filterOf(name string) (filterpolicy.Policy, error) {
	if bits, ok := strings.CutPrefix(name, ownPrefix); ok {
		n, err := strconv.Atoi(bits)
		if err != nil || n < 1 || n > 64 {
			return nil, bench.Usagef("filter %s: want %sBITS with 1 to 64 bits per key, such as own:10", name,
				ownPrefix)
		}
		return nil, nil
	}
	policy, err := ParseFilter(name)
	if err != nil {
		return nil, bench.Usagef("filter: %w (or none, oracle, own:10)", err)
	}
	return policy, nil
}

// ParseFilter returns the policy of a filter of this project, or of the oracle, which
// becomes one of a store by PolicyIn.
func ParseFilter(spec string) (filterpolicy.Policy, error) {
	if spec == OracleFilter {
		return oraclePolicy{}, nil
	}
	return filterpolicy.Parse(spec)
}

// PolicyIn returns p for the store in a directory: the oracle has its keys by store.
func PolicyIn(p filterpolicy.Policy, dir string) filterpolicy.Policy {
	if _, ok := p.(oraclePolicy); ok {
		return newOracle(dir)
	}
	return p
}

// pebble makes a variant one of Pebble, with its own filter if the policy is nil.
func (v *Variant) pebble(policy filterpolicy.Policy) {
	var filter pebble.FilterPolicy
	switch {
	case policy == nil:
		bits, _ := strconv.Atoi(strings.TrimPrefix(v.Filter, ownPrefix))
		filter = bloom.FilterPolicy(bits)
		v.bits, v.own = float64(bits), pebbleBloomRates[bits]
	case v.Policy != nil:
		filter = pebblefilter.New(v.Policy)
	}
	v.open = func(dir string, s Settings, t Tree) (Store, error) {
		filter := filter
		if v.Filter == OracleFilter {
			filter = newOracle(dir).pebble()
		}
		if t.FilterBudgetBytes > 0 {
			return nil, Unsupported("budget: pebble has none")
		}
		return OpenPebbleTree(dir, s, filter, t)
	}
}

// PebbleBloomFPR is what Pebble's Bloom filter errs at with 10 bits per key and six
// probes in one 64-byte line, by the simulation that Pebble publishes with it
// (simulation.md). The textbook formula for unblocked filters does not apply.
const PebbleBloomFPR = 0.0114

// pebbleBloomRates are rates by bits per key, from the same simulation.
var pebbleBloomRates = map[int]float64{10: PebbleBloomFPR, 16: 0.0035}

// CheckTree reports a tree that no store of an engine can have.
func CheckTree(engine string, t Tree) error {
	if !slices.Contains(CompactionStyles, t.Compaction) {
		return bench.Usagef("compaction %s: choose from %s", t.Compaction, strings.Join(CompactionStyles, ", "))
	}
	if !slices.Contains([]string{"null", "siftkv", "pebble", "pebble-iterator", RocksDBName}, engine) &&
		(t.YoungFiles > 0 || t.BaseLevelBytes > 0) {
		return Unsupported("shape: trees of %s are settled only", engine)
	}
	if engine != "siftkv" && t.Compaction != CompactionStyles[0] {
		return Unsupported("compaction %s: %s has %s only", t.Compaction, engine, CompactionStyles[0])
	}
	return nil
}

// unsupportedError matches ErrUnsupported and what it wraps.
type unsupportedError struct{ error }

func (e unsupportedError) Unwrap() []error { return []error{ErrUnsupported, e.error} }

// CanSpread reports whether the bits of a filter can be spread over levels.
func CanSpread(p filterpolicy.Policy) bool {
	const keys = 1 << 20
	return p != nil && filterpolicy.Spread(p, keys, []uint64{keys})[0] != 0
}
