package kv

import (
	"time"

	"github.com/siftkv/siftkv/internal/vfs"
)

// A Harness replaces what a program that tries the store needs to have in its hands: the
// file system, so that I/O fails and the power is cut, and the sizes and times that would
// make it wait. It is for the programs of this module alone, which the type of FS sees
// to. A zero field leaves what applications have.
type Harness struct {
	FS vfs.FS

	// FirstRetry and LastRetry bound the time between two attempts to heal, and after
	// compactions that fail.
	FirstRetry, LastRetry time.Duration

	// MaxManifestSize is the size in bytes from which on a manifest is replaced.
	MaxManifestSize int64
}

// Harness makes stores that are opened with the options use h.
func (o *Options) Harness(h Harness) {
	o.fs = h.FS
	o.backoff = backoff{h.FirstRetry, h.LastRetry}
	o.maxManifestSize = h.MaxManifestSize
}
