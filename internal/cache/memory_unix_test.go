//go:build unix && !race

package cache

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestACapacityMayBeLargerThanTheMachine(t *testing.T) {
	c := New(maxCapacity)
	var s Slot
	require.True(t, add(c, 1, &s, 4096, 'x'))
	require.True(t, read(t, c, &s, 4096, 'x'))
	c.Release()
}

func TestWithoutMemoryNothingIsKept(t *testing.T) {
	c := New(1 << 20)
	c.size = 1 << 60 // more than there are addresses
	var s Slot
	require.Nil(t, c.Reserve(1, &s, 4096, nil))
	_, ok := c.Pin(&s)
	require.False(t, ok)
	c.Resize(1 << 10)
	c.Drop(1, &s, nil)
	c.Release()
}
