package keyfilter

import (
	"fmt"
	"strings"

	"github.com/siftkv/siftkv/filterpolicy"
)

// All returns a policy for each family except "none", under its name: the last of the given ones
// with that name, or else the family's with one false positive in a hundred. That is about what ten
// bits per key of a Bloom filter give. The name is all that an engine keeps of a policy.
func All(given []filterpolicy.Policy) map[string]*Policy {
	all := make(map[string]*Policy)
	for _, d := range Decoders() {
		if p, err := filterpolicy.Parse(strings.TrimPrefix(d.name, Prefix) + ":rate=0.01"); err == nil {
			all[d.name] = &Policy{Decoder: d, of: p}
		}
	}
	for _, p := range given {
		if k, ok := New(p); ok {
			all[k.name] = k
		}
	}
	return all
}

// Unknown is the error about a name that is of none of these policies.
func Unknown(name string) error {
	names := make([]string, 0, len(filterpolicy.Families()))
	for _, d := range Decoders() {
		names = append(names, d.name)
	}
	return fmt.Errorf("no filter policy is called %q: the names are none, the engine's own, and %s",
		name, strings.Join(names, ", "))
}
