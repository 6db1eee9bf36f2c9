// Package faults has stores on disks that are full, whose calls fail, or that lose pages.
package faults

import (
	"testing"

	"github.com/siftkv/siftkv/internal/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, nil) }
