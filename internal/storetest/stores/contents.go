package stores

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
)

// RequireContents compares all that a store holds.
func RequireContents(t *testing.T, want storetest.Model, db kv.Reader) {
	t.Helper()
	it, err := db.NewIter(nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, it.Close()) }()
	keys := want.Keys()
	i := 0
	for ok := it.First(); ok; ok = it.Next() {
		if i == len(keys) || keys[i] != string(it.Key()) || want[keys[i]] != string(it.Value()) {
			require.Less(t, i, len(keys), "unexpected key %q", it.Key())
			require.Equal(t, keys[i], string(it.Key()))
			require.Equal(t, want[keys[i]], string(it.Value()), "value of %q", it.Key())
		}
		i++
	}
	require.NoError(t, it.Error())
	require.Equal(t, len(keys), i, "keys are missing at the end")
}
