// Package objects drives stores in object stores through their public face: requests, take-overs, faults, power cuts,
// logs on a local disk, and histories of several writers.
package objects

import (
	"testing"

	"github.com/siftkv/siftkv/internal/storetest"
)

// children are what a child does, by its mode.
var children = map[string]func(dir string) error{}

func TestMain(m *testing.M) { storetest.Main(m, children) }
