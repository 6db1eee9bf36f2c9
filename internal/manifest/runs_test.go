package manifest

import (
	"encoding/hex"
	"path/filepath"
	"slices"
	"testing"

	"github.com/siftkv/siftkv/internal/golden"
	"github.com/stretchr/testify/require"
)

func runsEdit() *Edit {
	table := func(num uint64) Table { return Table{Num: num, Smallest: []byte("a"), Largest: []byte("b")} }
	return &Edit{Added: []AddedTable{
		{Level: 1, Run: 300, Table: table(7)}, {Level: 1, Run: 2, Table: table(8)}, {Level: 1, Table: table(9)},
		{Level: 0, Table: table(10)},
	}}
}

// An edit that adds a table to a run other than the oldest has a field that older
// versions refuse; no other edit has.
func TestGoldenRunsOfTables(t *testing.T) {
	b := runsEdit().Append(nil)
	got, err := DecodeEdit(b)
	require.NoError(t, err)
	require.Equal(t, runsEdit(), got)
	require.Equal(t, []uint64{tagAdded, tagAdded, tagAdded, tagAdded, tagRun, tagRun}, tags(t, b))
	golden.File(t, filepath.Join("testdata", "runs.golden"), hex.Dump(b))
	for _, bad := range [][]byte{
		{tagRun, 2, 7, 1},                        // no such table
		append(slices.Clip(b), tagRun, 2, 10, 1), // it is in level 0
		append(slices.Clip(b), tagRun, 2, 9, 0),
		append(slices.Clip(b), tagRun, 2, 8, 3), // it has one already
		append(slices.Clip(b), tagRun, 1, 9),
	} {
		_, err := DecodeEdit(bad)
		require.ErrorIs(t, err, errEdit)
	}
}
