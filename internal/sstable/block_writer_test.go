package sstable

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/property"
)

// What one pass over two keys says is what comparisons say.
func TestFollowsAgreesWithCompare(t *testing.T) {
	key := rapid.Custom(func(t *rapid.T) base.InternalKey {
		user := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 255}), 0, 20).Draw(t, "user")
		return base.MakeKey(user, base.SeqNum(rapid.Uint64Range(0, 3).Draw(t, "seq")), base.KindSet)
	})
	property.Check(t, func(t *rapid.T) {
		last, k := key.Draw(t, "last"), key.Draw(t, "key")
		if rapid.Bool().Draw(t, "related") {
			k.User = append(bytes.Clone(last.User[:rapid.IntRange(0, len(last.User)).Draw(t, "kept")]), k.User...)
		}
		w := &Writer{props: tally{last: last, Properties: Properties{Entries: 1}}}
		shared, again, ok := w.follows(k)
		require.Equal(t, base.Compare(last, k) < 0, ok)
		require.Equal(t, bytes.Equal(last.User, k.User), again)
		require.Equal(t, last.User[:shared], k.User[:shared])
		if shared < len(k.User) && shared < len(last.User) {
			require.NotEqual(t, last.User[shared], k.User[shared])
		}
	})
}
