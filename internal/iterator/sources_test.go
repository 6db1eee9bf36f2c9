package iterator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// A memtable is merged for its points: one of range tombstones alone would only be one
// more sequence to seek in.
func TestAMemtableWithoutPointsIsNoSource(t *testing.T) {
	var deletes, points batchrepr.Writer
	deletes.Add(base.KindRangeDelete, []byte("a"), rangedel.AppendEnd(nil, []byte("b")))
	points.Add(base.KindSet, []byte("a"), nil)
	m := memtable.New(memtable.Slack)
	var s Sources
	for n, w := range []*batchrepr.Writer{{}, &deletes, &points} {
		if w.Len() > 0 {
			require.NoError(t, m.Apply(w.Seal(base.SeqNum(n))))
		}
		s.AddMemtable(m)
		require.Len(t, s.Iters, n/2)
	}
}
