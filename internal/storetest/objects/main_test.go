// Package objects drives stores in object stores through their public face: requests, take-overs, faults, power cuts,
// logs on a local disk, and histories of several writers.
package objects

import (
	"path/filepath"
	"testing"

	"github.com/siftkv/siftkv/internal/storetest"
)

// children are what a child does, by its mode.
var children = map[string]func(dir string) error{
	"objects":   func(dir string) error { return writeToObjects(dir, "", false) },
	"local log": func(dir string) error { return writeToObjects(dir, filepath.Join(dir, "..", "log"), true) },
	"restore":   restoreUntilKilled,
}

func TestMain(m *testing.M) { storetest.Main(m, children) }
