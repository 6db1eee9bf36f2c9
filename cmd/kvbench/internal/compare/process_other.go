//go:build !linux

package compare

import (
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// cpuTime is not measured here.
func cpuTime() time.Duration { return 0 }

// resident is not measured here.
func resident() (total, anonymous, peak int64) { return 0, 0, 0 }

// readFromDevice is not measured here.
func readFromDevice() engine.Count { return engine.Unknown }

// requestsOf is not measured here.
func requestsOf(string) engine.Count { return engine.Unknown }

// room cannot be told here.
func room(string) (int64, bool) { return 0, false }
