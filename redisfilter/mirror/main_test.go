package mirror_test

import (
	"os"
	"testing"
	"time"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
)

func TestMain(m *testing.M) {
	scale.Waiting(8)
	conn.DefaultTimeout = 24 * time.Hour                                 // no test depends on how fast its machine is
	conn.FirstLook = func() time.Duration { return conn.DefaultTimeout } // no test counts what a look asks
	os.Exit(m.Run())
}
