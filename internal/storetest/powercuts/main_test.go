// Package powercuts has the histories that are cut by a power failure, or in which calls to the disk fail.
package powercuts

import (
	"testing"

	"github.com/siftkv/siftkv/internal/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, nil) }
