// Package backups tests backups, restores and checkpoints of whole stores: each stream is cut, damaged and resumed.
package backups

import (
	"testing"

	"github.com/siftkv/siftkv/internal/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, nil) }
