// Package processes has processes whose memory or open files are bounded, each with stores of its own.
package processes

import (
	"testing"

	"github.com/siftkv/siftkv/internal/storetest"
)

// children are what a child does, by its mode.
var children = map[string]func(dir string) error{}

func TestMain(m *testing.M) { storetest.Main(m, children) }
