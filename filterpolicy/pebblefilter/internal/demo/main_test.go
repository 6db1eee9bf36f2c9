package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFiltersAnswerMostLookups(t *testing.T) {
	answered, err := run(t.TempDir())
	require.NoError(t, err)
	require.Greater(t, answered, int64(keys*97/100))
	require.LessOrEqual(t, answered, int64(keys))
}
