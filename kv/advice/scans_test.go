package advice

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/advise"
	"github.com/siftkv/siftkv/kv"
)

// Scans come to the blocks that have their entries.
func TestScansLeadToTheirBlocks(t *testing.T) {
	t.Parallel()
	db, _ := adviceStore(t, &kv.Options{})
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	w := locatorOf(t, db)
	blocksOf := func(s advise.Scan) (n int) {
		for _, p := range s.Parts {
			n += int(p.Blocks)
		}
		return n
	}
	perBlock := float64(w.shape.Files[0].Keys) / float64(w.shape.Files[0].Blocks)
	for _, n := range []int{0, 1, 10, 100, 5000} {
		lo, hi := adviceKey(10_000), adviceKey(10_000+2*n)
		for _, s := range []advise.Scan{{Start: lo, End: hi, Ended: true}, {Start: lo}, {Start: hi, Backward: true},
			{Start: hi, End: lo, Ended: true, Backward: true}} {
			s.Entries = n
			w.scan(&s)
			if n == 0 && s.End != nil {
				require.Empty(t, s.Parts)
				continue
			}
			require.InDelta(t, float64(n)/perBlock+1, blocksOf(s), 3+float64(n)/perBlock/20, "%+v", s)
			require.Equal(t, n == 0, s.Parts[0].Empty)
			require.Equal(t, s.End != nil, s.Bounded)
			if s.Bounded {
				require.GreaterOrEqual(t, s.Prefix, len("user/0"))
			}
		}
	}
	s := advise.Scan{Entries: 1 << 30, Bounded: true, Hashed: true}
	w.scan(&s)
	require.Empty(t, s.Parts)
	s = advise.Scan{Entries: 1 << 30, Ended: true}
	w.scan(&s)
	require.Len(t, s.Parts, min(maxScanParts, len(w.files)))
	w.store.Release()
	require.NoError(t, db.Close())
}
