package filterpolicy

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A family that is listed has a case of its own in parse, and its example makes a policy of its name.
func TestEveryFamilyParsesItsOwnName(t *testing.T) {
	for _, f := range families {
		p, err := Parse(f.example)
		require.NoError(t, err)
		require.Equal(t, f.name, p.Name())
	}
	for _, f := range rangeFamilies {
		p, err := ParseRange(f.example)
		require.NoError(t, err)
		require.Equal(t, f.name, p.Name())
	}
}
