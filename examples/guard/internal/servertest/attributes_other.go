//go:build !linux

package servertest

import "syscall"

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func unprivileged(*syscall.SysProcAttr, string) error { return nil }
