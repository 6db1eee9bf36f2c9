//go:build !unix

package turns

import "time"

// ProcessorTimeMeasured reports whether ProcessorTime is what the process has used on processors.
const ProcessorTimeMeasured = false

// ProcessorTime returns the time of a clock here.
func ProcessorTime() time.Duration { return time.Since(began) }
