// Package processes measures the memory and the open files of processes, this one or others, with stores of their own.
package processes

import (
	"testing"

	"github.com/siftkv/siftkv/internal/storetest"
)

// children are what a child does, by its mode.
var children = map[string]func(dir string) error{}

func TestMain(m *testing.M) { storetest.Main(m, children) }
