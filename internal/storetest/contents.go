package storetest

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// An Iterator goes through a store. It is a *kv.Iterator, without its package: kv's own tests use this one too.
type Iterator interface {
	First() bool
	Next() bool
	Key() []byte
	Value() []byte
	Error() error
	Close() error
}

// RequireContents compares all that a kv.Reader holds with a model.
func RequireContents[Options any, Iter Iterator](t testing.TB, want Model, db interface {
	NewIter(o *Options) (Iter, error)
}) {
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

// A ValueIterator is a *kv.Iterator that is on an entry.
type ValueIterator interface {
	Key() []byte
	Value() []byte
	ValueSize() int
}

// RequireValueOf holds what an iterator says of a value against what it should be. Of one that
// was merged some operands may be left, or none.
func RequireValueOf(t require.TestingT, it ValueIterator, keysOnly bool, want string, merged bool) {
	if !keysOnly {
		require.Equal(t, want, string(it.Value()))
		require.Equal(t, len(want), it.ValueSize())
		return
	}
	require.Nil(t, it.Value())
	if size := it.ValueSize(); !merged || size != -1 {
		require.Equal(t, len(want), size, "%q", it.Key())
	}
}

// ScatteredKey returns the key of a number, of 16 bytes, in dst. Keys of consecutive numbers are far from each other.
func ScatteredKey(dst []byte, i int) []byte {
	h := uint64(i+1) * 0x9e3779b97f4a7c15
	h = (h ^ h>>29) * 0xbf58476d1ce4e5b9
	dst = binary.BigEndian.AppendUint64(dst[:0], h^h>>32)
	return binary.BigEndian.AppendUint64(dst, h)
}
