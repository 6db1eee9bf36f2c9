package cell

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLaterRowsHaveTheEnvironmentOfTheFirst changes what an environment says between two measurements: the load average
// changes too, but not at once.
func TestLaterRowsHaveTheEnvironmentOfTheFirst(t *testing.T) {
	t.Parallel()
	l, s := newLab(t), small()
	s.Keys, s.Lookups, s.Reps = "500", 10, 1
	require.NoError(t, s.Check())
	source, err := s.Open()
	require.NoError(t, err)
	rows := []Row{{Name: "row", Settings: s}}
	first, err := l.Interleave(t.Context(), source, rows)
	require.NoError(t, err)
	l.Argv = []string{"later"}
	second, err := l.Interleave(t.Context(), source, rows)
	require.NoError(t, err)
	require.Equal(t, first[0].Environment, second[0].Environment)
	require.Equal(t, first[0].TimerNs, second[0].TimerNs)
}
