package kv

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/sstable"
)

// passing returns absent keys that the filter of the only file lets pass.
func passing(t *testing.T, db *DB, n int) map[int]bool {
	keys := map[int]bool{}
	for i := range n {
		c := readsOf(db, func() {
			_, err := db.Get(append(settledKey(i), 'x'))
			require.ErrorIs(t, err, ErrNotFound)
		})
		if c.FilterFalsePositives > 0 {
			keys[i] = true
		}
	}
	return keys
}

// Two stores of the same keys err for the same absent ones, so that whoever has one knows the other; with salts
// they do not, and everything else is as without.
func TestSaltedFilters(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "lookups of one goroutine")
	const n = 5000
	shared := func(spec string) (both, one int) {
		o := &Options{Filter: mustFilter(spec), FalsePositiveMemory: -1}
		a, b := passing(t, settledStore(t, n, o), n), passing(t, settledStore(t, n, o), n)
		for i := range a {
			if b[i] {
				both++
			}
		}
		return both, len(a)
	}
	both, one := shared("blocked:6")
	require.Equal(t, one, both)
	both, one = shared("salted:blocked:6")
	require.Greater(t, one, n/50)
	require.Less(t, both, one/4)
}

func TestSaltedFiltersOfPrefixes(t *testing.T) {
	dir := t.TempDir()
	prefix, err := filterpolicy.ParsePrefix("delimiter:/")
	require.NoError(t, err)
	o, err := ParseOptions("Filter = salted:blocked:16")
	require.NoError(t, err)
	o.Prefix = prefix
	db := openDir(t, dir, o)
	want := storetest.Model{}
	for _, k := range []string{"a/1", "c/2", "e/3"} {
		set(t, db, k, "v")
		want[k] = "v"
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.NoError(t, db.Close())
	db = openDir(t, dir, o)
	requireContents(t, want, db)
	for _, p := range []string{"b/", "c/"} {
		it, err := db.NewIter(&IterOptions{Prefix: []byte(p)})
		require.NoError(t, err)
		require.Equal(t, p == "c/", it.First())
		require.NoError(t, it.Close())
	}
	require.EqualValues(t, 1, db.Metrics().PrefixNegatives)
	require.NoError(t, db.Close())
	var report bytes.Buffer
	require.NoError(t, Verify(t.Context(), dir, &report), report.String())
	files, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	r, err := sstable.Open(files[0], nil)
	require.NoError(t, err)
	require.Equal(t, filterpolicy.SaltedName, r.Properties().FilterFamily)
	require.Equal(t, "salted:blocked:16", r.Properties().FilterPolicy, "what is shown of it")
	require.NoError(t, r.Close())
}

// secretFilter is a policy of a program's own whose filters are filterpolicy.SaltedFilter.
type secretFilter struct {
	filterpolicy.Policy
	secret uint64
}

type secretBuilder struct {
	filterpolicy.Builder
	secret uint64
}

func (secretFilter) Name() string   { return "secret" }
func (secretFilter) String() string { return "secret" }

func (p secretFilter) NewBuilder() filterpolicy.Builder {
	return secretBuilder{p.Policy.NewBuilder(), p.secret}
}

func (b secretBuilder) AddHash(h uint64) { b.Builder.AddHash(filterpolicy.Salt(h, b.secret)) }

func (p secretFilter) Decode(data []byte) (filterpolicy.Filter, error) {
	of, err := filterpolicy.Decode(p.Policy.Name(), data)
	return &filterpolicy.SaltedFilter{Of: of, Secret: p.secret}, err
}

// The secret of such a filter may be any number.
func TestSaltedFiltersOfAProgramsOwn(t *testing.T) {
	for _, secret := range []uint64{0, 1, 1 << 63} {
		const n = 1000
		db := settledStore(t, n, &Options{Filter: secretFilter{mustFilter("blocked:16"), secret}})
		c := readsOf(db, func() {
			for i := range n {
				_, err := db.Get(settledKey(i))
				require.NoError(t, err, "secret %d", secret)
			}
		})
		require.EqualValues(t, n, c.FilterTruePositives)
	}
}
