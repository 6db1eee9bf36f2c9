//go:build !unix

package bench

import "time"

// CPU returns 0 where the system does not tell.
func CPU() time.Duration { return 0 }
