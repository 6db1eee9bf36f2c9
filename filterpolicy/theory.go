package filterpolicy

// An Expectation is what theory says about a filter.
type Expectation struct {
	BitsPerKey float64 // size of the encoded filter over the number of keys
	FPR        float64 // probability of "maybe" for a key that was not added
	OK         bool    // false: nothing is known of this policy
}

// Expected returns what theory says about p's filter of so many distinct keys.
//
// The size counts everything that is written, footer and rounding included, and is
// exact for bloom and blocked, and for cuckoo, xor and fuse unless attempts at building
// fail, after which they take a few per cent more. For families whose size depends on
// the hashes (ribbon, gcs, quotient) it is that of a mean filter, within some bytes and a per
// cent or two, as the families' own Expected states. The rates are those of the literature, as each
// family's package states: for bloom the textbook's, for blocked the mean over the
// random load of the lines, for cuckoo that of the table's load. They are means
// over all filters; one filter of few keys may be a little better or worse. The
// filter of no keys is never wrong, and its bits per key are given as 0. No filter
// at all, which is what "none" makes, has no bits and a rate of 1.
func Expected(p Policy, keys int) Expectation {
	known, ok := p.(interface {
		expected(keys int) (bitsPerKey, fpr float64)
	})
	if !ok || keys < 0 {
		return Expectation{}
	}
	bitsPerKey, fpr := known.expected(keys)
	return Expectation{BitsPerKey: bitsPerKey, FPR: fpr, OK: true}
}
