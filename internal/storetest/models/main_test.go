// Package models holds stores against maps: random histories, alone, of several goroutines, with files that are taken
// in, in backups, and in object stores.
package models

import (
	"testing"

	"github.com/siftkv/siftkv/internal/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, nil) }
