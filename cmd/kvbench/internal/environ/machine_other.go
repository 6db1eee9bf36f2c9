//go:build !linux

package environ

// machine has nothing to add on this platform.
func (e *Environment) machine() {}
