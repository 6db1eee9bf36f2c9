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

func policy(t *testing.T, spec string) pebble.FilterPolicy {
	t.Helper()
	p, err := filterpolicy.Parse(spec)
	require.NoError(t, err)
	return pebblev1filter.New(p)
}

// TestFiltersRuleOutTables looks for keys that are there and for keys that are not
// in a real store, in level 0, where Get asks filters.
func TestFiltersRuleOutTables(t *testing.T) {
	for _, spec := range []string{"bloom:10", "blocked:10", "cuckoo:12"} {
		t.Run(spec, func(t *testing.T) {
			opts := &pebble.Options{FS: vfs.NewMem(), DisableAutomaticCompactions: true}
			opts.EnsureDefaults()
			for i := range opts.Levels {
				opts.Levels[i].FilterPolicy = policy(t, spec)
			}
			db, err := pebble.Open("db", opts)
			require.NoError(t, err)
			defer func() { require.NoError(t, db.Close()) }()
			const n = 2000
			for i := range n {
				require.NoError(t, db.Set(fmt.Appendf(nil, "key%05d", 2*i), nil, pebble.NoSync))
			}
			require.NoError(t, db.Flush())
			for i := range n {
				_, closer, err := db.Get(fmt.Appendf(nil, "key%05d", 2*i))
				require.NoError(t, err)
				require.NoError(t, closer.Close())
				_, _, err = db.Get(fmt.Appendf(nil, "key%05d", 2*i+1))
				require.ErrorIs(t, err, pebble.ErrNotFound)
			}
			m := db.Metrics().Filter
			require.Greater(t, m.Hits, int64(n*95/100), "Pebble's word for a no")
			require.GreaterOrEqual(t, m.Misses, int64(n), "every key that is there is a maybe")
		})
	}
}

func TestNoFilter(t *testing.T) {
	require.Nil(t, policy(t, "none"))
	require.Equal(t, "siftkv.blocked", policy(t, "blocked:12").Name())
}
