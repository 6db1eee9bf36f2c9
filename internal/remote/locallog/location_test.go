package locallog

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheLastLogsThatHaveEndedAreRemembered(t *testing.T) {
	var at Location
	before := at
	for epoch := range uint64(maxEnded + 3) {
		at.end(EndedLog{9, epoch})
		at.end(EndedLog{9, epoch})
		require.Len(t, at.Ended, min(int(epoch)+1, maxEnded))
		require.Equal(t, EndedLog{9, epoch}, at.Ended[len(at.Ended)-1])
		if epoch == 0 {
			before = at
		}
	}
	require.Equal(t, EndedLog{9, 3}, at.Ended[0])
	require.Equal(t, []EndedLog{{9, 0}}, before.Ended, "lists that were made stay as they are")
}
