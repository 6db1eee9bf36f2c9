package readamp

import (
	"slices"

	"github.com/siftkv/siftkv/internal/bench/measure"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/pebblefilter"
	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/keys"
)

// pebbleBloomBits is the size Pebble's documentation recommends for its filter.
const pebbleBloomBits = 10

// pebbleOwn names Pebble's own filter in reports.
const pebbleOwn = "bloom(10)"

// inPebble is the filter of this project that is measured inside Pebble.
const inPebble = "blocked:10"

// A storePlan is one store to build and the rows to measure on it.
type storePlan struct {
	name   string
	engine string
	filter string
	open   func(dir string) (engine.Store, error)
	// theory predicts the filter from the keys of a file; nil without a filter.
	theory func(keysPerFile int) *measure.Theory
	rows   []rowPlan
}

// A rowPlan is one way to look keys up in a store.
type rowPlan struct {
	name   string
	access engine.Access
}

// plan lists the stores of a run: null first, then in the order of Engines.
// Rows that differ in access only share a store, so that they read the same files.
func plan(c *Config, v keys.Values) ([]storePlan, error) {
	stores := []storePlan{{
		name: Null, engine: Null,
		open: func(string) (engine.Store, error) { return engine.NewNull(v), nil },
		rows: []rowPlan{{Null, engine.Get}},
	}}
	if slices.Contains(c.Engines, SiftKV) {
		siftkv, err := planSiftKV(c)
		if err != nil {
			return nil, err
		}
		stores = append(stores, siftkv...)
	}
	pebbles, err := planPebble(c)
	if err != nil {
		return nil, err
	}
	rocks, err := planRocksDB(c, v)
	if err != nil {
		return nil, err
	}
	return slices.Concat(stores, pebbles, rocks), nil
}

// Null is the name of the row that says what the harness itself costs.
const Null = "null"

// planSiftKV makes a store per filter.
func planSiftKV(c *Config) ([]storePlan, error) {
	var stores []storePlan
	for _, spec := range c.Filters {
		policy, err := engine.ParseFilter(spec)
		if err != nil {
			return nil, bench.Usagef("--filter: %w", err)
		}
		name := SiftKV + " " + policy.String()
		if slices.ContainsFunc(stores, func(s storePlan) bool { return s.name == name }) {
			return nil, bench.Usagef("--filter: %s is given twice", policy)
		}
		stores = append(stores, storePlan{
			name: name, engine: SiftKV, filter: policy.String(),
			open: func(dir string) (engine.Store, error) {
				return engine.OpenSiftKVTree(dir, c.Store, engine.PolicyIn(policy, dir),
					engine.Tree{Compaction: c.Compaction})
			},
			theory: expected(policy),
			rows:   []rowPlan{{name, engine.Get}},
		})
	}
	return stores, nil
}

// planPebble makes the Pebble stores that the chosen rows need.
func planPebble(c *Config) ([]storePlan, error) {
	ours, err := filterpolicy.Parse(inPebble)
	if err != nil {
		return nil, err
	}
	open := func(policy pebble.FilterPolicy) func(string) (engine.Store, error) {
		return func(dir string) (engine.Store, error) { return engine.OpenPebble(dir, c.Store, policy) }
	}
	ownTheory := func(int) *measure.Theory {
		return &measure.Theory{BitsPerKey: pebbleBloomBits, FPR: engine.PebbleBloomFPR}
	}
	candidates := []storePlan{
		{name: "pebble none", filter: "none", open: open(nil)},
		{name: "pebble " + pebbleOwn, filter: pebbleOwn, open: open(bloom.FilterPolicy(pebbleBloomBits)),
			theory: ownTheory},
		{name: "pebble siftkv " + inPebble, filter: "siftkv " + inPebble, open: open(pebblefilter.New(ours)),
			theory: expected(ours)},
	}
	rows := map[string]struct {
		store int
		row   rowPlan
	}{
		PebblePlain:    {0, rowPlan{candidates[0].name, engine.Get}},
		PebbleBloom:    {1, rowPlan{candidates[1].name, engine.Get}},
		PebbleSiftKV:   {2, rowPlan{candidates[2].name, engine.Get}},
		PebbleIterator: {1, rowPlan{"pebble iterator " + pebbleOwn, engine.Iterator}},
	}
	for _, name := range Engines() {
		if r, ok := rows[name]; ok && slices.Contains(c.Engines, name) {
			candidates[r.store].rows = append(candidates[r.store].rows, r.row)
		}
	}
	stores := slices.DeleteFunc(candidates, func(s storePlan) bool { return len(s.rows) == 0 })
	for i := range stores {
		stores[i].engine = "pebble"
	}
	return stores, nil
}

// planRocksDB makes a store per chosen filter of RocksDB.
func planRocksDB(c *Config, v keys.Values) ([]storePlan, error) {
	var stores []storePlan
	for _, s := range []struct{ engine, filter string }{{RocksDBPlain, "none"}, {RocksDBBloom, "bloom:10"},
		{RocksDBRibbon, "ribbon:10"}} {
		if !slices.Contains(c.Engines, s.engine) {
			continue
		}
		variant, err := engine.NewVariant(engine.RocksDBName, s.filter, v)
		if err != nil {
			return nil, err
		}
		name := engine.RocksDBName + " " + s.filter
		p := storePlan{
			name: name, engine: engine.RocksDBName, filter: s.filter,
			open: func(dir string) (engine.Store, error) { return variant.Open(dir, c.Store, engine.Tree{}) },
			rows: []rowPlan{{name, engine.Get}},
		}
		p.theory = func(keysPerFile int) *measure.Theory {
			bits, rate, ok := variant.Expected(keysPerFile)
			if !ok {
				return nil
			}
			return &measure.Theory{BitsPerKey: bits, FPR: rate}
		}
		stores = append(stores, p)
	}
	return stores, nil
}

// expected predicts a filter of this project; nil for the policy that makes none.
func expected(p filterpolicy.Policy) func(int) *measure.Theory {
	if p.Name() == "none" {
		return nil
	}
	return func(keysPerFile int) *measure.Theory { // of the oracle, zeros
		e := filterpolicy.Expected(p, keysPerFile)
		return &measure.Theory{BitsPerKey: e.BitsPerKey, FPR: e.FPR}
	}
}
