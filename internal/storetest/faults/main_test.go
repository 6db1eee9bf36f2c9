// Package faults has stores that separate values at their commits, on disks whose calls fail or that lose pages.
package faults

import (
	"testing"

	"github.com/siftkv/siftkv/internal/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, nil) }
