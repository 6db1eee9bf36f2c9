//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package source

import (
	"errors"
	"io"
)

// Flock is only for systems that have it: elsewhere nothing tells that a store is in use.
func Flock(string) (io.Closer, error) { return nil, errors.ErrUnsupported }

// RecordLock is only for systems that have it.
func RecordLock(string) (io.Closer, error) { return nil, errors.ErrUnsupported }

// LockAlone is only for systems that have it.
func LockAlone(string) (io.Closer, error) { return nil, errors.ErrUnsupported }
