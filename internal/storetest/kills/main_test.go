// Package kills has processes that work on a store until they are killed, and looks at what they leave.
package kills

import (
	"testing"

	"github.com/siftkv/siftkv/internal/storetest"
)

// children are what a child does, by its mode.
var children = map[string]func(dir string) error{}

func TestMain(m *testing.M) { storetest.Main(m, children) }
