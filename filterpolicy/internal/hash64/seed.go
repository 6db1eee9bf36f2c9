package hash64

// Seed returns the seed of an attempt at building a filter of hashes: 0 for the first. Later seeds follow from a digest
// of the set of hashes, which does not depend on their order or on duplicates, so that equal keys have equal filters.
//
// If later seeds were public numbers, a few keys could be chosen that make each attempt fail. Choosing them now takes
// all keys of the file; the family "salted" prevents that too.
func Seed(hashes *List, attempt int) uint32 {
	if attempt == 0 {
		return 0
	}
	digest := uint64(0)
	for _, z := range Distinct(hashes, 0) {
		digest += Mix(z + Golden)
	}
	return uint32(Mix(digest)>>32) + uint32(attempt)
}
