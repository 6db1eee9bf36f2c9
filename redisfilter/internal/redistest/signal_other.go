//go:build !unix

package redistest

import "os"

// There is no redis-server here that could be stopped.
var stopSignal, continueSignal os.Signal = os.Interrupt, os.Interrupt
