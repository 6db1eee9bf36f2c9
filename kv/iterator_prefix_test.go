package kv

import (
	"fmt"
	"testing"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/stretchr/testify/require"
)

// scan returns the keys of [lo, hi), forward and backward, which must agree.
func scan(t *testing.T, db *DB, lo, hi string) []string {
	t.Helper()
	it, err := db.NewIter(&IterOptions{LowerBound: []byte(lo), UpperBound: []byte(hi)})
	require.NoError(t, err)
	defer it.Close()
	keys := []string{}
	for ok := it.First(); ok; ok = it.Next() {
		keys = append(keys, string(it.Key()))
	}
	n := len(keys)
	for ok := it.Last(); ok; ok = it.Prev() {
		n--
		require.Equal(t, keys[n], string(it.Key()))
	}
	require.Zero(t, n)
	require.NoError(t, it.Error())
	return keys
}

// TestScansWithinAPrefixPassOverFiles scans users of a store whose files overlap:
// the filter of each file knows which users are in it.
func TestScansWithinAPrefixPassOverFiles(t *testing.T) {
	t.Parallel()
	for _, only := range []bool{false, true} {
		for _, compact := range []bool{false, true} {
			p, err := filterpolicy.ParsePrefix("delimiter:/")
			require.NoError(t, err)
			o := &Options{InMemory: true, L0CompactionThreshold: 100, Prefix: p, PrefixOnly: only,
				Filter: mustParse("blocked:16")}
			db, err := Open("", o)
			require.NoError(t, err)
			const users, files = 300, 6
			for f := range files {
				for u := f; u < users; u += files {
					for item := range 3 {
						require.NoError(t, db.Set(fmt.Appendf(nil, "user%04d/%d", 2*u, item), nil, Async))
					}
				}
				require.NoError(t, db.Flush(t.Context()))
			}
			if compact {
				require.NoError(t, db.Compact(t.Context(), nil, nil))
			}
			for u := range users {
				lo := fmt.Sprintf("user%04d/", 2*u)
				require.Equal(t, []string{lo + "0", lo + "1", lo + "2"}, scan(t, db, lo, lo+"\xff"))
				require.Equal(t, []string{lo + "1"}, scan(t, db, lo+"1", lo+"2"))
			}
			before := db.Metrics()
			for u := range users {
				lo := fmt.Sprintf("user%04d/", 2*u+1)
				require.Empty(t, scan(t, db, lo, lo+"\xff"))
			}
			m := db.Metrics()
			checks, negatives := m.PrefixChecks-before.PrefixChecks, m.PrefixNegatives-before.PrefixNegatives
			require.GreaterOrEqual(t, checks, uint64(users-1))
			require.Greater(t, negatives, checks*9/10, "files passed over")

			require.Len(t, scan(t, db, "user0000/", "user0002/\xff"), 6, "a range of two prefixes")
			for u := range users {
				ok, err := db.Has(fmt.Appendf(nil, "user%04d/1", 2*u))
				require.NoError(t, err)
				require.True(t, ok)
				ok, err = db.Has(fmt.Appendf(nil, "user%04d/1", 2*u+1))
				require.NoError(t, err)
				require.False(t, ok)
			}
			l := db.Metrics().Lookup()
			require.Greater(t, l.FilterNegatives, uint64(users*9/10))
			require.NoError(t, db.Close())
		}
	}
}

// TestAnotherExtractorCostsReadsNotAnswers opens files with an extractor that did
// not write them.
func TestAnotherExtractorCostsReadsNotAnswers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, step := range []struct {
		prefix string
		only   bool
	}{{"fixed:4", true}, {"fixed:6", false}, {"", false}, {"delimiter:/", true}} {
		o := &Options{PrefixOnly: step.only}
		if step.prefix != "" {
			p, err := filterpolicy.ParsePrefix(step.prefix)
			require.NoError(t, err)
			o.Prefix = p
		}
		db, err := Open(dir, o)
		require.NoError(t, err)
		require.NoError(t, db.Set([]byte("user/a/"+step.prefix), nil, nil))
		require.NoError(t, db.Set([]byte("u"), nil, nil)) // too short for a prefix
		want := []string{}
		for _, p := range []string{"", "delimiter:/", "fixed:4", "fixed:6"} {
			k := "user/a/" + p
			if ok, err := db.Has([]byte(k)); ok {
				want = append(want, k)
			} else {
				require.NoError(t, err)
			}
		}
		require.NoError(t, db.Flush(t.Context()))
		require.Equal(t, want, scan(t, db, "user/a/", "user/a/\xff"))
		require.Contains(t, want, "user/a/"+step.prefix)
		ok, err := db.Has([]byte("u"))
		require.NoError(t, err)
		require.True(t, ok)
		require.NoError(t, db.Close())
	}
	_, err := Open(dir, &Options{PrefixOnly: true})
	require.ErrorIs(t, err, ErrInvalidOptions)
}
