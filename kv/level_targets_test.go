package kv

import (
	"testing"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/stretchr/testify/require"
)

// Levels shrink as values lie apart: those above the last one together may hide what mostHidden allows, and level 0 is
// compacted into one that is not much larger than it is.
func TestLevelsShrinkWithWhatTablesHave(t *testing.T) {
	db := openMem(t, &Options{BlobSpace: 1.3})
	shape := func(tables int64, apart uint64) (baseLevel int, targets [NumLevels]int64) {
		e := &manifest.Edit{}
		e.Added = []manifest.AddedTable{{Level: lastLevel, Table: manifest.Table{Num: 90, Size: tables, Entries: 1000,
			Smallest: []byte("a"), Largest: []byte("b")}}}
		if apart > 0 {
			e.AddedBlobs = []manifest.BlobFile{{Num: 91, ID: 1, Size: int64(apart) + 88, Records: 1000,
				ValueBytes: apart}}
			e.Added[0].Table.Blobs = []manifest.BlobRef{{Num: 91, Records: 1000, Bytes: apart}}
		}
		v, err := (&version.Version{}).Apply(e)
		require.NoError(t, err)
		return db.levelTargets(v)
	}
	const mib, gib = 1 << 20, 1 << 30
	baseLevel, targets := shape(240*mib, 0)
	require.Equal(t, lastLevel, baseLevel)
	require.EqualValues(t, 240*mib, targets[lastLevel])

	baseLevel, targets = shape(240*mib, 100*gib) // handles of 16 KiB
	require.Equal(t, 4, baseLevel)
	require.InEpsilon(t, 0.028*240*mib, targets[5], 0.2)
	require.InEpsilon(t, targets[5]/levelFactor, targets[4], 0.2)
	require.Greater(t, targets[4], int64(128*mib/417), "what flushes of 128 MiB leave in tables")

	baseLevel, _ = shape(600<<10, 256*mib)
	require.Equal(t, lastLevel, baseLevel)
	baseLevel, _ = shape(100*gib, gib)
	wide, _ := shape(100*gib, 0)
	require.Equal(t, wide, baseLevel, "a few values apart change nothing")

	db.opts.SpaceAmplification = 2
	for apart := range uint64(2) {
		_, targets = shape(100*gib, apart*gib)
		require.InEpsilon(t, 90*gib, targets[5], 0.02, "all levels above have as much as the last one")
	}
}
