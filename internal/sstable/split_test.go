package sstable

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/stretchr/testify/require"
)

// Cuts are in order, and as many entries are between one and the next, whether the index has
// leaves or not.
func TestCutsAreEvenlyApart(t *testing.T) {
	scale.OneGoroutine(t, "it is about sizes")
	const entries = 10_000
	for _, partition := range []int{64, 1 << 20} {
		var vs []version
		for i := range entries {
			vs = append(vs, version{base.MakeKey(fmt.Appendf(nil, "%06d", i), 1, base.KindSet), []byte("value")})
		}
		data, _ := writeFile(t, &WriterOptions{BlockSize: 256, IndexPartition: partition}, vs)
		r := openBytes(t, data, nil)
		for _, n := range []int{0, 1, 7, 100} {
			cuts, err := r.Cuts(n)
			require.NoError(t, err)
			require.Len(t, cuts, n)
			require.True(t, slices.IsSortedFunc(cuts, bytes.Compare))
			from := 0
			for _, cut := range cuts {
				to := 0
				for to < entries && fmt.Sprintf("%06d", to) < string(cut) {
					to++
				}
				require.InDelta(t, entries/(n+1), to-from, 2*20, "%d cuts", n)
				from = to
			}
		}
		cuts, err := r.Cuts(entries)
		require.NoError(t, err)
		require.Less(t, len(cuts), entries, "no more than there are blocks")
	}
}
