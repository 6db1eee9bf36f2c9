package handles

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLeaked(t *testing.T) {
	open := errors.New("open")
	var l List
	require.NoError(t, l.Leaked(open, "handle"))
	l.Add(1, false, 0)
	l.Add(2, false, 0)
	l.Remove(1, false)
	require.Equal(t, 1, l.Count())
	err := l.Leaked(open, "handle")
	require.ErrorIs(t, err, open)
	require.ErrorContains(t, err, "1; Options.TraceOpens tells where")

	l.Add(3, true, 0)
	err = l.Leaked(open, "handle")
	require.ErrorIs(t, err, open)
	require.Regexp(t, `handle 1 of 1 was opened at:\n\t.*TestLeaked\n\t\t.*handles_test\.go:\d+`, err.Error())
	l.Remove(3, true)
	l.Remove(2, false)
	require.NoError(t, l.Leaked(open, "handle"))
}
