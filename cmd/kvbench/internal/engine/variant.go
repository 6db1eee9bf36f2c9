package engine

import (
	"errors"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/pebblefilter"
)

// ErrUnsupported marks settings that are right each by itself, but that an engine does not
// have together. A sweep leaves such cells out.
var ErrUnsupported = errors.New("unsupported")

type unsupportedError struct{ error }

func (e unsupportedError) Unwrap() []error { return []error{ErrUnsupported, e.error} }

// Unsupported returns an error that matches both ErrUnsupported and bench.ErrUsage.
func Unsupported(format string, args ...any) error {
	return unsupportedError{bench.Usagef(format, args...)}
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
	// theory only: each store has its own, see policyIn.
	Policy filterpolicy.Policy

	// Open opens or creates the store of a variant.
	Open func(dir string, s Settings, t Tree) (Store, error)

	values keys.Values
	own    float64 // rate of the engine's own filter; 0: not known
	bits   float64 // of the engine's own filter
	least  int     // keys of a file for which these hold
}

// NewVariant returns an engine with a filter: none, oracle, a spec of this project's
// filters, or own:BITS for the engine's own. The values are what null answers with.
func NewVariant(engine, filter string, v keys.Values) (*Variant, error) {
	if err := CheckName("engine", engine, Variants()); err != nil {
		return nil, err
	}
	out := &Variant{Engine: engine, Filter: filter, Access: Get, values: v}
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
	return out, find(engine).vary(out, policy)
}

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
// becomes one of a store by policyIn.
func ParseFilter(spec string) (filterpolicy.Policy, error) {
	if spec == OracleFilter {
		return oraclePolicy{}, nil
	}
	return filterpolicy.Parse(spec)
}

// CanSpread reports whether the bits of a filter can be spread over levels.
func CanSpread(p filterpolicy.Policy) bool {
	const keys = 1 << 20
	return p != nil && filterpolicy.Spread(p, keys, []uint64{keys})[0] != 0
}

// policyIn returns p for the store in a directory: the oracle has its keys by store.
func policyIn(p filterpolicy.Policy, dir string) filterpolicy.Policy {
	if _, ok := p.(oraclePolicy); ok {
		return newOracle(dir)
	}
	return p
}

func (v *Variant) null(filterpolicy.Policy) error {
	v.Null, v.Open = true, func(string, Settings, Tree) (Store, error) { return NewNull(v.values), nil }
	if v.Filter != "none" {
		return Unsupported("filter %s: null has none", v.Filter)
	}
	return nil
}

func (v *Variant) siftkv(policy filterpolicy.Policy) error {
	if policy == nil {
		return Unsupported("filter %s: siftkv has no filters but those of this project, such as bloom:10", v.Filter)
	}
	v.Open = func(dir string, s Settings, t Tree) (Store, error) {
		return openSiftKVTree(dir, s, policyIn(policy, dir), t)
	}
	return nil
}

// fixed makes a variant one of an engine whose filter cannot be chosen.
func fixed(filter string, open func(dir string, s Settings) (Live, error)) func(*Variant, filterpolicy.Policy) error {
	return func(v *Variant, _ filterpolicy.Policy) error {
		if v.Filter != filter {
			return Unsupported("filter %s: %s has %s only", v.Filter, v.Engine, filter)
		}
		v.Open = func(dir string, s Settings, _ Tree) (Store, error) { return open(dir, s) }
		return nil
	}
}

// pebbleBloomRates are what Pebble's Bloom filter errs at by bits per key, with 10 bits and six
// probes in one 64-byte line, by the simulation that Pebble publishes with it
// (simulation.md). The textbook formula for unblocked filters does not apply.
var pebbleBloomRates = map[int]float64{10: 0.0114, 16: 0.0035}

// pebble makes a variant one of Pebble, with its own filter if the policy is nil.
func (v *Variant) pebble(policy filterpolicy.Policy) error {
	if v.Engine == PebbleIteratorName {
		v.Access = Iterator
	}
	var filter pebble.FilterPolicy
	switch {
	case policy == nil:
		bits, _ := strconv.Atoi(strings.TrimPrefix(v.Filter, ownPrefix)) // it was checked
		filter = bloom.FilterPolicy(bits)
		v.bits, v.own = float64(bits), pebbleBloomRates[bits]
	case v.Policy != nil:
		filter = pebblefilter.New(v.Policy)
	}
	v.Open = func(dir string, s Settings, t Tree) (Store, error) {
		filter := filter
		if v.Filter == OracleFilter {
			filter = newOracle(dir).pebble()
		}
		if t.FilterBudgetBytes > 0 {
			return nil, Unsupported("budget: pebble has none")
		}
		return openPebbleTree(dir, s, filter, t)
	}
	return nil
}

// rocksDBFilters are the filters of RocksDB by name, in the form of its options. Its
// Ribbon filter takes the bits of a Bloom filter as good; files of level 0 have that
// Bloom filter, as they live short.
var rocksDBFilters = map[string]func(bits string) string{
	"bloom":  func(bits string) string { return "bloomfilter:" + bits + ":false" },
	"ribbon": func(bits string) string { return "ribbonfilter:" + bits + ":0" },
}

const (
	// rocksDBBloomRate is that of RocksDB's Bloom filter with 10 bits per key: six probes in a
	// line of 64 bytes, over the random load of the lines.
	rocksDBBloomRate = 0.0095
	// rocksDBRoundedKeys is the number of keys from which on rounding to whole lines of 64
	// bytes does not matter to it.
	rocksDBRoundedKeys = 1000
)

// rocksDB makes a variant one of RocksDB, with filter none, bloom:BITS or ribbon:BITS;
// own:BITS is its Bloom filter.
func (v *Variant) rocksDB(filterpolicy.Policy) error {
	name, bits, _ := strings.Cut(v.Filter, ":")
	if name+":" == ownPrefix {
		name = "bloom"
		v.Filter = name + ":" + bits
	}
	v.Policy = nil // it has the name of a filter of this project, and is none
	filter := ""
	if v.Filter != "none" {
		n, err := strconv.ParseFloat(bits, 64)
		form, ok := rocksDBFilters[name]
		if !ok || err != nil || n < 1 || n > 64 {
			return Unsupported("filter %s: rocksdb has none, bloom:BITS and ribbon:BITS, its own ones", v.Filter)
		}
		filter = form(bits)
		if v.Filter == "bloom:10" {
			v.bits, v.own, v.least = n, rocksDBBloomRate, rocksDBRoundedKeys
		}
	}
	v.Open = func(dir string, s Settings, t Tree) (Store, error) { return openRocksDBTree(dir, s, filter, t) }
	return nil
}
