// Package damage has stores whose files are damaged, and files that were made to do harm.
package damage

import (
	"testing"

	"github.com/siftkv/siftkv/internal/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, nil) }
