package pebblefilter_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/pebblefilter"
)

// Tables of each family are read with their filters by a store that has no policy of its own.
func TestFiltersKnowEveryFamily(t *testing.T) {
	require.Len(t, pebblefilter.Filters(), len(filterpolicy.Families())-1)
	for _, spec := range specs {
		fs := vfs.NewMem()
		db := open(t, fs, pebblefilter.New(parse(t, spec)), nil)
		load(t, db)
		closed(t, db)
		db = open(t, fs, pebble.NoFilterPolicy, func(o *pebble.Options) { o.Filters = pebblefilter.Filters() })
		negatives, _ := check(t, db)
		require.Positive(t, negatives, spec)
		closed(t, db)
	}
}

// Options that went through text write and read the filters that they did before.
func TestOptionsGoThroughText(t *testing.T) {
	for _, spec := range specs {
		var o, parsed pebble.Options
		o.EnsureDefaults()
		for i := range o.Levels {
			o.Levels[i].FilterPolicy = pebblefilter.New(parse(t, spec))
		}
		hooks := &pebble.ParseHooks{NewFilterPolicy: pebblefilter.ByName(parse(t, "bloom:8"), parse(t, spec))}
		require.NoError(t, parsed.Parse(o.String(), hooks))
		parsed.EnsureDefaults()
		require.Equal(t, o.String(), parsed.String())
		db := open(t, vfs.NewMem(), parsed.Levels[0].FilterPolicy, nil)
		load(t, db)
		negatives, _ := check(t, db)
		require.Positive(t, negatives, spec)
		closed(t, db)
	}
}

// A name stands for the policy that was given for it, down to the bits.
func TestNamesStandForGivenPolicies(t *testing.T) {
	size := func(policies ...filterpolicy.Policy) int {
		p, err := pebblefilter.ByName(policies...)("siftkv.blocked")
		require.NoError(t, err)
		w := p.NewWriter(pebble.TableFilter)
		for i := range 10_000 {
			w.AddKey(key(i))
		}
		return len(w.Finish(nil))
	}
	require.InEpsilon(t, 10_000*10/8, size(), 0.1, "about ten bits per key")
	require.InEpsilon(t, 10_000*20/8, size(parse(t, "blocked:5"), parse(t, "blocked:20"), parse(t, "bloom:3")), 0.05)
}

func TestNamesThatAreNotOurs(t *testing.T) {
	byName := pebblefilter.ByName()
	p, err := byName("none")
	require.NoError(t, err)
	require.Equal(t, pebble.NoFilterPolicy, p)
	p, err = byName("rocksdb.BuiltinBloomFilter")
	require.NoError(t, err)
	require.Equal(t, "rocksdb.BuiltinBloomFilter", p.Name())
	_, err = byName("siftkv.none")
	require.ErrorContains(t, err, `"siftkv.none"`)
	var o, parsed pebble.Options
	o.EnsureDefaults()
	o.Levels[0].FilterPolicy = other{pebble.NoFilterPolicy}
	err = parsed.Parse(o.String(), &pebble.ParseHooks{NewFilterPolicy: byName})
	require.ErrorContains(t, err, `no filter policy is called "application's"`)
}

// other is a policy of some application.
type other struct{ pebble.FilterPolicy }

func (other) Name() string { return "application's" }
