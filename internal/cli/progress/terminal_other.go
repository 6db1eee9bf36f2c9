//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows)

package progress

func isTerminal(uintptr) bool { return false }
