package fuse

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Places are distinct and inside for every size, and sizes neither jump nor wrap.
func TestLayoutsOfAnySize(t *testing.T) {
	for arity := 3; arity <= 4; arity++ {
		for n := uint64(1); n < 1<<32; n += n/3 + 1 {
			for growth := range 4 {
				l := layoutFor(arity, n, growth)
				cells, places := l.Size()
				require.Equal(t, arity, places)
				require.Zero(t, cells%l.length)
				require.LessOrEqual(t, l.log, uint32(maxLog))
				require.GreaterOrEqual(t, cells, n)
				require.LessOrEqual(t, cells, 2*n+3*n/(1+n/200)+uint64(growth)*n)
			}
		}
	}
}
