package stress

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// Features are parts of a run that can be left out.
var Features = []string{
	// What workers do.
	"ttl", "merge", "rangedel", "tx", "ingest", "backup", "checkpoint", "compact", "snapshot", "context", "follower",
	"separated", "streams", "huge", "slots",
	// What goes wrong.
	"sync", "write", "nospace", "emfile", "read", "names", "latency", "badfile", "cut", "kill",
	"swap", "fulldisk", "panics",
	// What goes wrong with an object store.
	"replies", "requests", "bodies", "partition",
	// What is looked at beyond the content.
	"doctor", "garbage", "modes", "absolute",
	// Rounds that combine faults in ways that chance seldom does.
	"scenarios",
}

// Sparing are features that lives do without now and then: what is there can hide what would
// be seen without it (Groce et al., "Swarm Testing", ISSTA 2012).
var sparing = []string{"ttl", "merge", "rangedel", "tx", "ingest", "compact", "snapshot", "latency", "badfile",
	"read", "nospace", "fulldisk", "panics", "separated", "streams", "huge", "slots"}

// A featureSet says which features are wanted.
type featureSet map[string]bool

// parseFeatures reads names with commas between them: "all", or those that are wanted, and
// with a minus those that are not.
func parseFeatures(text string) (featureSet, error) {
	set := featureSet{}
	for name := range strings.SplitSeq(text, ",") {
		name, out := strings.CutPrefix(strings.TrimSpace(name), "-")
		switch {
		case name == "all" || name == "" || out && len(set) == 0:
			for _, f := range Features {
				set[f] = true
			}
		case !slices.Contains(Features, name):
			return nil, fmt.Errorf("stress: there is no feature %q: want all, or some of %s", name,
				strings.Join(Features, ", "))
		}
		if slices.Contains(Features, name) {
			set[name] = !out
		}
	}
	return set, nil
}

// some returns the set without some of its features.
func (s featureSet) some(rng *rand.Rand) featureSet {
	left := maps.Clone(s)
	for _, f := range sparing {
		if rng.IntN(4) == 0 {
			left[f] = false
		}
	}
	return left
}
