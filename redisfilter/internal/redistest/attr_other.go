//go:build !linux

package redistest

import "syscall"

// dieWithParent returns nothing here: a server outlives a test's process that dies without its cleanups.
func dieWithParent() *syscall.SysProcAttr { return nil }

func lockToThread() {}
