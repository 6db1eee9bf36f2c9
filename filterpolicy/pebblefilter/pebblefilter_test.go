package pebblefilter_test

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/pebblefilter"
)

var specs = []string{"bloom:10", "blocked:10", "cuckoo:12"}

func TestNamesAreOfFamilies(t *testing.T) {
	for spec, name := range map[string]string{
		"bloom:10": "siftkv.bloom", "bloom:5": "siftkv.bloom", "blocked:9.6": "siftkv.blocked",
		"cuckoo:4,8": "siftkv.cuckoo",
	} {
		require.Equal(t, name, pebblefilter.New(parse(t, spec)).Name())
	}
}

// namesake is a policy of another origin that has the name of one of ours.
type namesake struct {
	filterpolicy.Policy
	_ []byte // not comparable
}

// stranger is a policy that no one can decode.
type stranger struct{ filterpolicy.Policy }

func (stranger) Name() string { return "stranger" }

func TestPoliciesWithoutFilters(t *testing.T) {
	require.Equal(t, pebble.NoFilterPolicy, pebblefilter.New(parse(t, "none")))
	require.Equal(t, pebble.NoFilterPolicy, pebblefilter.New(stranger{parse(t, "bloom:10")}))
	require.Equal(t, pebble.NoFilterPolicy, pebblefilter.New(namesake{Policy: parse(t, "bloom:10")}))
}

func TestWriterMakesWhatBuildersMake(t *testing.T) {
	for _, spec := range specs {
		p := parse(t, spec)
		w, b := pebblefilter.New(p).NewWriter(pebble.TableFilter), p.NewBuilder()
		for i := range 1000 {
			key := fmt.Appendf(nil, "prefix %d", i/3) // three versions each
			w.AddKey(key)
			b.AddHash(filterpolicy.Hash(key))
		}
		want, ok := b.Finish([]byte("before"))
		require.True(t, ok)
		require.Equal(t, want, w.Finish([]byte("before")))
	}
}

func TestMayContainDoesNotAllocate(t *testing.T) {
	key := []byte("a key of some length")
	for _, spec := range specs {
		p, data := pebblefilter.New(parse(t, spec)), build(t, spec, 1000)
		require.Zero(t, testing.AllocsPerRun(100, func() { p.MayContain(pebble.TableFilter, data, key) }))
	}
}

// open opens a store whose levels all have one policy and whose compactions wait to
// be asked for.
func open(t *testing.T, fs vfs.FS, policy pebble.FilterPolicy, change func(o *pebble.Options)) *pebble.DB {
	t.Helper()
	o := &pebble.Options{FS: fs, DisableAutomaticCompactions: true}
	o.EnsureDefaults()
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = policy
	}
	if change != nil {
		change(o)
	}
	db, err := pebble.Open("", o)
	require.NoError(t, err)
	return db
}

func closed(t *testing.T, db *pebble.DB) {
	t.Helper()
	require.NoError(t, db.Close())
}

const (
	tables       = 4
	keysPerTable = 500
)

// key returns an existing key for even numbers and, between them, an absent one for
// odd ones. Neighbours are in different tables.
func key(i int) []byte { return fmt.Appendf(nil, "key%06d", i) }

func load(t *testing.T, db *pebble.DB) {
	t.Helper()
	for table := range tables {
		for i := range keysPerTable {
			k := key(2 * (i*tables + table))
			require.NoError(t, db.Set(k, append([]byte("v"), k...), pebble.NoSync))
		}
		require.NoError(t, db.Flush())
	}
}

// check looks up all keys, existing and absent, and returns how many tables the
// filters ruled out, and how many they did not.
func check(t *testing.T, db *pebble.DB) (negatives, maybes int64) {
	t.Helper()
	before := db.Metrics().Filter
	for i := range 2 * tables * keysPerTable {
		v, closer, err := db.Get(key(i))
		if i%2 == 1 {
			require.ErrorIs(t, err, pebble.ErrNotFound)
			continue
		}
		require.NoError(t, err, "%s", key(i))
		require.Equal(t, "v"+string(key(i)), string(v))
		require.NoError(t, closer.Close())
	}
	after := db.Metrics().Filter
	return after.Hits - before.Hits, after.Misses - before.Misses
}

// Of 4 tables an absent key is asked of all, an existing one of those younger than
// its own and of that.
func TestFiltersRuleOutTables(t *testing.T) {
	for _, spec := range specs {
		t.Run(spec, func(t *testing.T) {
			db := open(t, vfs.NewMem(), pebblefilter.New(parse(t, spec)), nil)
			defer closed(t, db)
			load(t, db)
			negatives, maybes := check(t, db)
			const existing = tables * keysPerTable
			require.InDelta(t, tables*existing+existing*(tables-1)/2, negatives, 0.03*tables*existing)
			require.InDelta(t, existing, maybes, 0.05*existing)
		})
	}
}

// Each change of policy leaves the answers alone; filters work on as long as their
// family's policy is known.
func TestReopenWithAnotherPolicy(t *testing.T) {
	policy := func(spec string) pebble.FilterPolicy { return pebblefilter.New(parse(t, spec)) }
	for _, c := range []struct {
		name   string
		policy pebble.FilterPolicy
		known  []pebble.FilterPolicy
		works  bool
	}{
		{"same", policy("blocked:10"), nil, true},
		{"other bits", policy("blocked:14"), nil, true},
		{"other family", policy("cuckoo:12"), nil, false},
		{"other family, old one known", policy("cuckoo:12"), []pebble.FilterPolicy{policy("blocked:1")}, true},
		{"no filter", pebble.NoFilterPolicy, nil, false},
		{"no filter, old one known", pebble.NoFilterPolicy, []pebble.FilterPolicy{policy("blocked:1")}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := vfs.NewMem()
			db := open(t, fs, policy("blocked:10"), nil)
			load(t, db)
			closed(t, db)

			db = open(t, fs, c.policy, func(o *pebble.Options) {
				o.Filters = map[string]pebble.FilterPolicy{}
				for _, p := range c.known {
					o.Filters[p.Name()] = p
				}
			})
			defer closed(t, db)
			negatives, _ := check(t, db)
			require.Equal(t, c.works, negatives > 0, "%d negatives", negatives)
		})
	}
}

// byPrefix is a comparer whose keys have a prefix of nine bytes: the whole of
// key's, and none of what follows.
func byPrefix() *pebble.Comparer {
	c := *pebble.DefaultComparer
	c.Name = "siftkv.test.prefix"
	c.Split = func(k []byte) int { return min(len(k), 9) }
	return &c
}

// In the last level too, for an iterator that asks for it; with several keys to a
// prefix.
func TestPrefixesInTheLastLevel(t *testing.T) {
	for _, spec := range specs {
		t.Run(spec, func(t *testing.T) {
			db := open(t, vfs.NewMem(), pebblefilter.New(parse(t, spec)),
				func(o *pebble.Options) { o.Comparer = byPrefix() })
			defer closed(t, db)
			for i := range 1000 {
				for version := range 3 {
					require.NoError(t, db.Set(fmt.Appendf(key(2*i), "@%d", version), []byte("v"), pebble.NoSync))
				}
			}
			require.NoError(t, db.Compact(t.Context(), []byte("a"), []byte("z"), false))
			it, err := db.NewIter(&pebble.IterOptions{UseL6Filters: true})
			require.NoError(t, err)
			for i := range 2000 {
				require.Equal(t, i%2 == 0, it.SeekPrefixGE(key(i)), "%s", key(i))
				for n := 0; it.Valid(); n++ {
					require.Equal(t, fmt.Sprintf("%s@%d", key(i), n), string(it.Key()))
					it.Next()
				}
			}
			require.NoError(t, it.Close())
			require.InDelta(t, 1000, db.Metrics().Filter.Hits, 40)
		})
	}
}
