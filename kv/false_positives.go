package kv

const (
	// defaultFalsePositiveMemory is what 16,384 false positives take, their keys aside: of lookups of absent keys by a
	// Zipf law it saves five sixths of the blocks (docs/study.md).
	defaultFalsePositiveMemory = 256 << 10

	// falsePositivePart: it is at most 1/falsePositivePart of a common limit. With the keys it is
	// six times as much.
	falsePositivePart = 1024

	// minFalsePositiveMemory is one set of slots.
	minFalsePositiveMemory = 128
)

// falsePositivesOf returns how much of a common limit is for the memory of false positives, in bytes.
func falsePositivesOf(limit int64) int64 {
	return min(max(limit/falsePositivePart, minFalsePositiveMemory), defaultFalsePositiveMemory)
}
