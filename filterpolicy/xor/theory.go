package xor

// Expected returns the size and the false-positive rate of a filter of the given
// number of distinct keys. The size counts the footer; it is exact unless eight
// attempts at building fail. A filter too large to build has no bits and says maybe
// to everything.
func (p Policy) Expected(keys int) (bitsPerKey, fpr float64) { return p.plan().Expected(keys) }
