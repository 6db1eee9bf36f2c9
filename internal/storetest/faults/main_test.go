// Package faults has stores on disks of which calls fail, and those that are full.
package faults

import (
	"testing"

	"github.com/siftkv/siftkv/internal/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, nil) }
