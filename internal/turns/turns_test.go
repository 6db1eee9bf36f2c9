package turns

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheMedianOfAnEvenNumberIsBetweenTwo(t *testing.T) {
	require.Equal(t, 3.0, median([]float64{9, 1, 3}))
	require.Equal(t, 2.5, median([]float64{9, 1, 3, 2}))
	figures := []float64{2, 1}
	require.Equal(t, 1.5, median(figures))
	require.Equal(t, []float64{2, 1}, figures, "rounds stay in their order")
}

// A store may lack a figure, ours too.
func TestTheTextWithoutAFigure(t *testing.T) {
	var table Table
	for _, figure := range []float64{1, 3} {
		table.Add("ours", "load", figure)
		table.Add("theirs", "load", 2*figure)
		table.Add("theirs", "size", figure)
		table.Add("ours", "scan", figure)
	}
	require.Equal(t, []string{"",
		"load                     ours 2; theirs 4, ratio 0.50 (0.50 to 0.50)",
		"size                     theirs 2",
		"scan                     ours 2",
	}, strings.Split(table.text("ours", []string{"theirs", "others"}), "\n"))
}
