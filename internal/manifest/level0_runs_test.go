package manifest

import (
	"encoding/hex"
	"path/filepath"
	"slices"
	"testing"

	"github.com/siftkv/siftkv/internal/golden"
	"github.com/stretchr/testify/require"
)

// An edit that adds tables of level 0 which are a run together has a field that older versions
// refuse; no other edit has.
func TestGoldenRunsOfLevel0(t *testing.T) {
	table := func(num uint64) Table { return Table{Num: num, Smallest: []byte("a"), Largest: []byte("b")} }
	e := &Edit{Added: []AddedTable{{Run: 300, Table: table(300)}, {Run: 300, Table: table(301)}, {Table: table(302)},
		{Level: 1, Table: table(10)}}}
	b := e.Append(nil)
	got, err := DecodeEdit(b)
	require.NoError(t, err)
	require.Equal(t, e, got)
	require.Equal(t, []uint64{tagAdded, tagAdded, tagAdded, tagAdded, tagLevel0Run, tagLevel0Run}, tags(t, b))
	golden.File(t, filepath.Join("testdata", "level0_runs.golden"), hex.Dump(b))
	for _, bad := range [][]byte{
		{tagLevel0Run, 2, 7, 1},                                // no such table
		append(slices.Clip(b), tagLevel0Run, 2, 10, 1),         // it is in level 1
		append(slices.Clip(b), tagRun, 3, 0xae, 2, 1),          // it is in level 0
		append(slices.Clip(b), tagLevel0Run, 3, 0xae, 2, 0),    // 0
		append(slices.Clip(b), tagLevel0Run, 3, 0xad, 2, 1),    // it has one already
		append(slices.Clip(b), tagLevel0Run, 2, 0xae, 2),       // cut off
		append(slices.Clip(b), tagLevel0Run, 4, 0xae, 2, 1, 1), // too long
	} {
		_, err := DecodeEdit(bad)
		require.ErrorIs(t, err, errEdit)
	}
}
