package filterpolicy

import (
	"strings"

	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// ErrBadSpec is matched by the errors of Parse.
var ErrBadSpec = spec.ErrBadSpec

// Parse makes a policy from its spec, a family's name and, after a colon, its
// parameters:
//
//	none
//	bloom:BITS          bits per key, 1 to 64, up to three decimals
//	blocked:BITS        bits per key, 1 to 32, up to three decimals
//	cuckoo:BITS         bits per fingerprint, 4 to 32; 4 slots per bucket
//	cuckoo:BITS,SLOTS   2, 4 or 8 slots per bucket
//	cuckoo:BITS,4,semisort
//	                    semi-sorted buckets: a bit less per slot; BITS from 5 to 32
//	ribbon:BITS         result bits, 1 to 32, up to three decimals
//	gcs:BITS            logarithm of the rate, 1 to 32, up to three decimals
//	quotient:BITS       bits per remainder, 2 to 32
//	xor:BITS            bits per fingerprint, 4 to 32
//	fuse:BITS           bits per fingerprint, 4 to 32; 3 places per key
//	fuse:BITS,PLACES    3 or 4 places per key
//
// In place of BITS, "rate=0.01" means the least bits whose false-positive rate, by
// Expected for files of any size, is not above this one: "blocked:rate=0.01",
// "cuckoo:rate=0.001,2". A rate is a decimal fraction of at most 0.5; the lowest is
// that of the most bits. The policy's String gives the bits.
//
// An error matches ErrBadSpec, says what is wrong and what the bounds are, and
// shows a spec that is right.
func Parse(s string) (Policy, error) {
	name, args, given := strings.Cut(s, ":")
	f, ok := familyOf(name)
	if !ok {
		return nil, spec.Errorf(s, "blocked:10", "unknown family; the families are %s", usages())
	}
	if args == "" && (given || f.usage != f.name) {
		return nil, spec.Errorf(s, f.example, "its form is %s", f.usage)
	}
	return f.parse(args)
}

func usages() string {
	all := make([]string, len(families))
	for i, f := range families {
		all[i] = f.usage
	}
	return strings.Join(all, ", ")
}
