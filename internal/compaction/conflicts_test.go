package compaction

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/version"
)

// A pick during a job that writes into the output level does not visit the tables.
func TestAPickDuringAMergeDoesNotVisitTables(t *testing.T) {
	in := input(versionOf(t, table(0, "a", "z", 100), table(0, "a", "z", 100)))
	in.Style = LazyLeveled
	running := in.State.Reserve(lastLevel, version.Span{})
	visits := 0
	pick := func() *Job {
		return in.ifFree(lastLevel, func() *Job {
			visits++
			return mergeLevels(in.Version, "", 0, lastLevel)
		})
	}
	require.Nil(t, pick())
	require.Zero(t, visits)
	in.State.Release(running)
	require.Len(t, pick().Inputs[0], 2)
	require.Equal(t, 1, visits)
}

// A job waits for one that writes keys of its level, in a leveled store only where they share keys, and for callers. A
// merge within level 0 gives way only to a caller that nothing else keeps waiting.
func TestJobsThatConflict(t *testing.T) {
	v := versionOf(t, table(0, "a", "f", 100), table(5, "a", "c", 100), table(5, "g", "k", 100))
	span := func(lo, hi string) version.Span { return version.Span{Lo: []byte(lo), Hi: []byte(hi)} }
	down := merge(v, "", v.Levels[5].Tables()[:1], 5, lastLevel)
	within := merge(v, "", v.Level0(), 0, 0)
	for _, c := range []struct {
		name           string
		change         func(in *Input)
		leveled, other bool // whether down conflicts
		within         bool // whether within does, in a leveled store
	}{
		{"nothing runs", func(*Input) {}, false, false, false},
		{"the same keys", func(in *Input) { in.State.Reserve(lastLevel, span("b", "d")) }, true, true, false},
		{"other keys", func(in *Input) { in.State.Reserve(lastLevel, span("d", "e")) }, false, true, false},
		{"another level", func(in *Input) { in.State.Reserve(4, span("b", "d")) }, false, false, false},
		{"a caller", func(in *Input) { in.State.Wanted = []*version.Span{{Lo: []byte("b")}} }, true, true, true},
		{"a caller that waits for another job", func(in *Input) {
			in.State.Wanted = []*version.Span{{Lo: []byte("b")}}
			in.State.Reserve(4, span("d", "e"))
		}, true, true, false},
		{"a caller elsewhere", func(in *Input) {
			in.State.Wanted = []*version.Span{{Lo: []byte("x")}}
		}, false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := input(v)
			c.change(in)
			require.Equal(t, c.leveled, in.conflicts(down))
			require.Equal(t, c.within, in.conflicts(within))
			in.Style = Tiered
			require.Equal(t, c.other, in.conflicts(down))
		})
	}
	in := input(v)
	down.Inputs[5][0].Quarantined = true
	require.True(t, in.conflicts(down))
	require.False(t, in.Busy(down))
	down.Inputs[5][0].Compacting = true
	require.True(t, in.Busy(down))
}
