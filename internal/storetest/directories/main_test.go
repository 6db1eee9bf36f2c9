// Package directories tests what stores leave in their directories: the modes of files, and the file of options.
package directories

import (
	"testing"

	"github.com/siftkv/siftkv/internal/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, nil) }
