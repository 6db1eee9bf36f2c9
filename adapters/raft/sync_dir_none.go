//go:build windows || plan9

package siftraft

// syncDir does nothing: these systems keep a name with its file, and do not sync directories.
func syncDir(string) error { return nil }
