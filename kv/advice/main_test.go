package advice

import (
	"testing"

	"github.com/siftkv/siftkv/internal/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, nil) }
