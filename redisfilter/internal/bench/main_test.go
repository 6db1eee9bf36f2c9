package bench

import (
	"os"
	"testing"
	"time"

	"github.com/siftkv/siftkv/redisfilter/internal/conn"
)

// patience is longer than go test lets a test run.
const patience = 24 * time.Hour

func TestMain(m *testing.M) {
	conn.DefaultTimeout = patience                            // the machine may be busy
	conn.FirstLook = func() time.Duration { return patience } // no test counts what a look asks
	os.Exit(m.Run())
}
