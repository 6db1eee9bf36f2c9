// Package formats opens golden stores and backups of every version of the formats, and refuses those of later versions.
package formats

import (
	"testing"

	"github.com/siftkv/siftkv/internal/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, nil) }
