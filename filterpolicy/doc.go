// Package filterpolicy holds the filters of sorted files: sets that answer "no" for
// certain or "maybe", in a few bits per key.
//
// A filter never sees a key, only the key's 64-bit hash. A store hashes once per
// lookup and asks every file's filter with the same number:
//
//	policy, err := filterpolicy.Parse("blocked:10")    // a family and its parameters
//
//	b := policy.NewBuilder()                           // while a file is written
//	b.AddHash(filterpolicy.Hash(key))                  // for each key
//	data, ok := b.Finish(nil)                          // the file's filter block
//
//	f, err := filterpolicy.Decode(policy.Name(), data) // once, when a file is opened
//	f.MayContainHash(h)                                // false: the key is not there
//
// # Families
//
// Each family is a package of its own with the same verbs (Parse, Policy, Builder, Decode, Filter,
// Probe) and concrete types, for callers that want one family without an interface between.
//
//	none        no filter (None); what filters are measured against
//	bloom:B     classic Bloom filter, B bits per key: the textbook rate, k cache misses
//	blocked:B   Bloom filter in cache lines: one cache miss; the default (Default)
//	cuckoo:F,S  F-bit fingerprints, S slots per bucket (2, 4 or 8; 4 if not given):
//	            low rates; two cache misses, and sets that change
//	xor:F       F-bit fingerprints in three thirds: fuse's elder
//	fuse:F,P    binary fuse, P places per key (3 or 4; 3 if not given): few bits at
//	            low rates, fast probes, slower builds
//	ribbon:B    the fewest bits of all, slower probes and builds
//	gcs:B       Golomb-coded set: few bits, very slow probes, lists its values, merges
//	quotient:F  quotient filter: lists its values, merges without the keys
//
// A filter of hashes cannot say what is between two keys. Range filters can: they are given the
// keys themselves, in order (see RangePolicy, ParseRange, DecodeRange). Their families:
//
//	none        no filter (NoRanges)
//	cut:M       keys cut to where they differ and M bits more (package cutkeys)
//
// A set of keys that an application holds is a Set (see Build), or, if it changes,
// one of packages bloom, blocked, counting, scalable, cuckoo and quotient.
//
// B may have up to three decimals, and a rate may be given in place of bits: "bloom:rate=0.01" (see
// Parse). Expected tells what a policy will cost and how often it will be wrong.
//
// # Promises
//
// There are no false negatives: a filter that has been decoded says true for each hash that was added. Its
// false-positive rate holds for any distinct hashes, even for counters, and does not grow with the number of keys.
//
// Encoded filters describe themselves and carry a checksum. Decode takes any bytes and never reads
// beyond them; what it refuses matches ErrCorrupt or ErrUnknownFamily, and a file without a usable
// filter should be read as if its filter said true. The bytes of a policy for the same hashes in
// the same order are the same on every machine; a family's name and encoding never change.
//
// Policies are values that may be compared and shared. A Builder belongs to one
// goroutine. A Filter may be probed by any number.
package filterpolicy
