package pebblev1filter_test

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/vfs"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/pebblev1filter"
)

// The one level that EnsureDefaults makes counts for all of them; options that went through text, and
// a store that knows the families by name alone, read what was written.
func TestOneLevelIsForAllAndNamesAreEnough(t *testing.T) {
	require.Len(t, pebblev1filter.Filters(), len(filterpolicy.Families())-1)
	for _, spec := range []string{"bloom:10", "ribbon:7", "fuse:8"} {
		fs := vfs.NewMem()
		o := &pebble.Options{Comparer: byPrefix()}
		o.EnsureDefaults()
		require.Len(t, o.Levels, 1)
		o.Levels[0].FilterPolicy = policy(t, spec)
		text := o.String()
		o.FS = fs
		db, err := pebble.Open("db", o)
		require.NoError(t, err)
		for i := range prefixes {
			require.NoError(t, db.Set(fmt.Appendf(nil, "key%04d@1", 2*i), nil, pebble.NoSync))
		}
		require.NoError(t, db.Compact([]byte("a"), []byte("z"), false))
		require.NoError(t, db.Close())

		parsed := &pebble.Options{}
		hooks := &pebble.ParseHooks{
			NewFilterPolicy: pebblev1filter.ByName(),
			NewComparer:     func(string) (*pebble.Comparer, error) { return byPrefix(), nil },
		}
		require.NoError(t, parsed.Parse(text, hooks))
		parsed.EnsureDefaults()
		require.Equal(t, text, parsed.String())
		unfiltered := &pebble.Options{Comparer: byPrefix(), Filters: pebblev1filter.Filters()}
		for _, o := range []*pebble.Options{parsed, unfiltered} {
			o.FS = fs
			db, err := pebble.Open("db", o)
			require.NoError(t, err)
			it, err := db.NewIter(&pebble.IterOptions{UseL6Filters: true})
			require.NoError(t, err)
			for i := range 2*prefixes - 1 {
				require.Equal(t, i%2 == 0, it.SeekPrefixGE(fmt.Appendf(nil, "key%04d@1", i)))
			}
			require.NoError(t, it.Close())
			require.InDelta(t, prefixes, db.Metrics().Filter.Hits, 0.05*prefixes, "Pebble's word for a no: %s", spec)
			require.NoError(t, db.Close())
		}
	}
}

const prefixes = 1000

func byPrefix() *pebble.Comparer {
	c := *pebble.DefaultComparer
	c.Name = "siftkv.test.prefix"
	c.Split = func(k []byte) int { return min(len(k), 7) }
	return &c
}

func TestNamesThatAreNotOurs(t *testing.T) {
	byName := pebblev1filter.ByName()
	p, err := byName("none")
	require.NoError(t, err)
	require.Nil(t, p)
	p, err = byName("rocksdb.BuiltinBloomFilter")
	require.NoError(t, err)
	require.Equal(t, "rocksdb.BuiltinBloomFilter", p.Name())
	_, err = byName("siftkv.none")
	require.ErrorContains(t, err, `"siftkv.none"`)
}

// What the documentation says of the defaults, which a new release may change.
func TestDefaultsThatProgramsHaveToSet(t *testing.T) {
	require.Empty(t, (&pebble.Options{}).Levels)
	require.Nil(t, pebble.DefaultComparer.Split)
}
