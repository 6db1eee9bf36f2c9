//go:build unix && !linux && !race

package cache

// Elsewhere the advice differs in meaning or is missing.

func adviseHuge([]byte) {}
func dontNeed([]byte)   {}
