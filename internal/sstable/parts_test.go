package sstable

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a released iterator keeps for the next one is counted: blocks that lay in two parts, which may be large, are not
// kept beside it.
func TestAReleasedIteratorKeepsNoBlockOfTwoParts(t *testing.T) {
	r, _ := openParts(t, WriterOptions{}, -1)
	far := &Far{Pass: &Pass{}}
	var it Iter
	it.Share(far)
	it.Init(r, IterOptions{})
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	require.NoError(t, it.Error())
	require.Equal(t, runKeys, n)
	require.NotZero(t, cap(far.parts.join))
	it.Release()
	require.Zero(t, cap(far.parts.join))
	require.Zero(t, cap(far.parts.queue))
}
