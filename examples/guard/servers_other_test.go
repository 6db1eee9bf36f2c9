//go:build !linux

package main

import "syscall"

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func unprivileged(*syscall.SysProcAttr, string) error { return nil }
