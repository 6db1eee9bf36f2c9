package pebblefilter_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/metamorphic"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/pebblefilter"
	"github.com/siftkv/siftkv/internal/scale"
)

// liar says no to every key.
type liar struct{ pebble.FilterPolicy }

func (liar) MayContain(pebble.FilterType, []byte, []byte) bool { return false }

// history runs Pebble's own random operations with a seed and a policy, and returns
// the file of their results. Everything but the policy follows from the seed.
func history(t *testing.T, seed uint64, name string, policy pebble.FilterPolicy) string {
	t.Helper()
	format := metamorphic.TestkeysKeyFormat
	random := rand.New(rand.NewPCG(0, seed))
	o := metamorphic.RandomOptions(random, format,
		metamorphic.RandomOptionsCfg{NoRemoteStorage: true, NoWALFailover: true})
	ops := metamorphic.GenerateOps(random, 2000, format, metamorphic.DefaultOpConfig())
	o.Threads = 1
	o.Opts.MemTableSize = 32 << 10 // tables, and so filters, from so few operations
	o.Opts.Filters = nil
	for i := range o.Opts.Levels {
		o.Opts.Levels[i].FilterPolicy = policy
	}
	file, err := os.Create(filepath.Join(t.TempDir(), fmt.Sprintf("%d-%s", seed, name)))
	require.NoError(t, err)
	defer file.Close()
	test, err := metamorphic.New(ops, o, "", file)
	require.NoError(t, err)
	require.NoError(t, metamorphic.Execute(test))
	return file.Name()
}

// Pebble's metamorphic test: a filter must not change any result, and one that lies
// is noticed.
func TestHistoriesAreEqual(t *testing.T) {
	for seed := range uint64(scale.Count(1, 4)) {
		plain := history(t, seed, "none", pebble.NoFilterPolicy)
		for _, spec := range []string{"bloom:10", "blocked:2", "blocked:10", "cuckoo:4,2", "cuckoo:12"} {
			filtered := history(t, seed, "filtered", pebblefilter.New(parse(t, spec)))
			_, difference := metamorphic.CompareHistories(t, []string{plain, filtered})
			require.Empty(t, difference, "%s, seed %d", spec, seed)
		}
		lies := history(t, seed, "liar", liar{pebblefilter.New(parse(t, "blocked:10"))})
		_, difference := metamorphic.CompareHistories(t, []string{plain, lies})
		require.NotEmpty(t, difference, "seed %d", seed)
	}
}
