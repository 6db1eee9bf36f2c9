//go:build !unix

package turns

import "time"

// ProcessorTime returns the time of a clock here.
func ProcessorTime() time.Duration { return clock() }
