//go:build unix && !linux

package offheap

const noReserve = 0

// Elsewhere the advice differs in meaning or is missing.

func adviseHuge([]byte) {}
func dontNeed([]byte)   {}
