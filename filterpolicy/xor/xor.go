package xor

import "github.com/siftkv/siftkv/filterpolicy/fuse"

// Name is the family's name on disk.
const Name = fuse.XorName

// The types are those of package fuse, whose code makes and reads both families.
type (
	// A Policy is the family with its fingerprint bits.
	Policy = fuse.Policy
	// A Builder collects hashes and turns them into a filter.
	Builder = fuse.Builder
	// A Filter is a read-only view of a filter's bytes.
	Filter = fuse.Filter
)

// Parse reads fingerprint bits, from 4 to 32, or a false-positive rate such as "rate=0.004", which
// means the fewest bits whose rate is not above it.
func Parse(args string) (Policy, error) { return fuse.ParseXor(args) }

// Decode checks data, every byte of it, and returns a view of it. The caller must not change data
// while the filter is in use. An error matches the sentinel of corruption.
func Decode(data []byte) (*Filter, error) { return fuse.DecodeXor(data) }

// Probe is a single probe of encoded bytes, for callers that keep no Filter and whose own checksum
// covers data. Bytes that are no filter answer true.
func Probe(data []byte, h uint64) bool { return fuse.ProbeXor(data, h) }
