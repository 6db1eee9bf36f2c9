package survey

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Numbers that are missing after a clean close are damage where something cannot be read, between logs, and at the end.
// A store that failed and went on has left out others.
func TestWhatAClosedStoreIsMissing(t *testing.T) {
	t.Parallel()
	run := func(first, last uint64) Run { return Run{SeqRange{first, last}, false} }
	broken := func(first, last uint64) Run { return Run{SeqRange{first, last}, true} }
	for name, c := range map[string]struct {
		logs    [][]Run
		missing []SeqRange
	}{
		"nothing":                   {[][]Run{{run(6, 8)}, {run(9, 10)}}, nil},
		"left out by a failure":     {[][]Run{{run(7, 8), run(10, 10)}}, nil},
		"more than was noted":       {[][]Run{{run(6, 12)}}, nil},
		"an unused log":             {[][]Run{{}, {run(6, 10)}}, nil},
		"the end":                   {[][]Run{{run(6, 8)}}, []SeqRange{{9, 10}}},
		"all":                       {nil, []SeqRange{{6, 10}}},
		"the first log":             {[][]Run{{}, {run(8, 10)}}, []SeqRange{{6, 7}}},
		"the beginning":             {[][]Run{{broken(8, 10)}}, []SeqRange{{6, 7}}},
		"the middle":                {[][]Run{{run(6, 7), broken(9, 10)}}, []SeqRange{{8, 8}}},
		"the end of the first log":  {[][]Run{{run(6, 7)}, {run(9, 10)}}, []SeqRange{{8, 8}}},
		"damage that cost no write": {[][]Run{{broken(6, 8), broken(9, 10)}}, nil},
	} {
		s := &Store{Manifest: &Manifest{Name: "MANIFEST-000001", LastSeq: 5, ClosedSeq: 10}}
		var live []*Log
		for _, runs := range c.logs {
			live = append(live, &Log{Runs: runs})
		}
		s.judgeClose(live)
		require.Equal(t, c.missing, s.Manifest.Missing, name)
		require.Len(t, s.Damage, len(c.missing), name)
	}
}
