package redistest

import (
	"runtime"
	"syscall"
)

// dieWithParent has the kernel end a server when the test's process dies, whose cleanups then do not run.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

func lockToThread() { runtime.LockOSThread() }
