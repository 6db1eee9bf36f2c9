package kv

import (
	"testing"

	"github.com/siftkv/siftkv/internal/storetest"
)

// children are what a child does, by its mode.
var children = map[string]func(dir string) error{"hold": holdUntilEOF, "restore": restoreUntilKilled}

// What tests of restores share with the package kills.
var step, killAfter = storetest.Step, storetest.KillAfter

func TestMain(m *testing.M) { storetest.Main(m, children) }
