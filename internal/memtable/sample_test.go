package memtable

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
)

// A sample is in order, about as large as it was asked for, and spread evenly.
func TestSample(t *testing.T) {
	const entries = 20_000
	m := New(4 << 20)
	for i := range entries {
		k := fmt.Appendf(nil, "%05d", i*7919%entries)
		require.NoError(t, add(m, base.MakeKey(k, base.SeqNum(i+1), base.KindSet), make([]byte, 50)))
	}
	for _, n := range []int{1, 200, 2000, entries, 2 * entries} {
		var last []byte
		found, lower := 0, 0
		m.Sample(n, func(user []byte, size int64) {
			require.True(t, last == nil || bytes.Compare(last, user) < 0)
			require.EqualValues(t, 5+50+tailSize, size)
			last = user
			found++
			if string(user) < "10000" {
				lower++
			}
		})
		if n >= 200 {
			require.InEpsilon(t, 0.5, float64(lower)/float64(found), 0.4)
			require.GreaterOrEqual(t, found, min(n, entries)*2/3)
		}
		require.LessOrEqual(t, found, max(8*n, 50))
	}
	New(1<<10).Sample(10, func([]byte, int64) { t.Fatal("an empty memtable has no sample") })
}
