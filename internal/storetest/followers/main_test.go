// Package followers tests views of a directory, beside a store that writes, flushes, compacts, ingests and fails.
package followers

import (
	"testing"

	"github.com/siftkv/siftkv/internal/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, nil) }
