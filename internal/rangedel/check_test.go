package rangedel

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/internal/scale"
)

// check checks a property, less often than usual, as each is dear.
func check(t *testing.T, holds func(*rapid.T)) {
	t.Helper()
	property.Often(scale.Count(30, property.Usual))
	property.Check(t, holds)
}
