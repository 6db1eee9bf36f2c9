// Package backups tests backups, restores and checkpoints of whole stores: each stream cut, damaged and resumed, and
// each call of a disk failing.
package backups

import (
	"testing"

	"github.com/siftkv/siftkv/internal/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, nil) }
