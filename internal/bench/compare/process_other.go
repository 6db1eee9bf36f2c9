//go:build !linux

package compare

import (
	"io/fs"
	"time"
)

// cpuTime is not measured here.
func cpuTime() time.Duration { return 0 }

// resident is not measured here.
func resident() (total, anonymous, peak int64) { return 0, 0, 0 }

// written is not measured here.
func written() int64 { return 0 }

// allocated returns the size of a file.
func allocated(info fs.FileInfo) int64 { return info.Size() }
