package kv

import (
	"testing"

	"github.com/siftkv/siftkv/internal/storetest"
)

// children are what a child does, by its mode.
var children = map[string]func(dir string) error{"hold": holdUntilEOF}

func TestMain(m *testing.M) { storetest.Main(m, children) }
