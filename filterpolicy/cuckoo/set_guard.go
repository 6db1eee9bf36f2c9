package cuckoo

// A guard knows the hashes in a set and how often each is there. The nil guard
// knows nothing.
type guard map[uint64]uint32

func (g guard) add(h uint64) {
	if g != nil {
		g[h]++
	}
}

func (g guard) remove(h uint64) {
	switch {
	case g[h] > 1:
		g[h]--
	case g != nil:
		delete(g, h)
	}
}
