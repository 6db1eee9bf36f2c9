// Package values tests stores whose values are in blob files: how they are read, cached, merged, and found damaged.
package values

import (
	"testing"

	"github.com/siftkv/siftkv/internal/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, nil) }
