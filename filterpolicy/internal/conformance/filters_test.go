package conformance

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/none"
)

// A filterFamily is what the checks of all filters have to know of a family's. What it promises
// beyond is tested in the file named after it.
type filterFamily struct {
	suites     []suite
	golden     []string // specs with a golden file
	theory     []theory
	unmixed    []unmixedCase
	duplicates []duplicates
	hostile    []string // specs whose bytes are changed as an adversary would, and fuzzed
}

// A suite runs for some specs, with filters of up to most keys.
type suite struct {
	most  int
	specs []string
}

// A theory is what filterpolicy.Expected says of some specs: size and rate of n keys, by so many
// probes, within a share of each.
type theory struct {
	n, probes  int
	size, rate float64
	specs      []string
}

// An unmixedCase holds numbers that nobody hashed to the rate of hashes, but for a share.
type unmixedCase struct {
	n, probes int
	share     float64
	specs     []string
}

// A duplicates spec takes no space for keys that come again, but for a share.
type duplicates struct {
	spec  string
	share float64
}

// exact is how near sizes are that do not depend on the hashes, and near how near the rates are.
const exact, near = 1e-9, 0.03

var filterFamilies = map[string]filterFamily{
	"bloom": {
		suites: []suite{{1_000_000, []string{"bloom:10"}},
			{10_000, []string{"bloom:1", "bloom:9.6", "bloom:16", "bloom:64"}}},
		golden: []string{"bloom:10", "bloom:1", "bloom:9.6", "bloom:16", "bloom:64"},
		theory: []theory{
			{1000, 1_000_000, exact, near, []string{"bloom:10"}},
			{1_000_000, 2_000_000, exact, near, []string{"bloom:10"}},
			{20_000, 1_000_000, exact, near, []string{"bloom:1", "bloom:2.5", "bloom:5", "bloom:8", "bloom:9.6",
				"bloom:12", "bloom:16", "bloom:20"}},
		},
		unmixed: []unmixedCase{{1000, 200_000, 0.2, []string{"bloom:10"}},
			{100_000, 200_000, 0.03, []string{"bloom:10"}}},
		hostile: []string{"bloom:10", "bloom:1", "bloom:64"},
	},
	"blocked": {
		suites: []suite{{1_000_000, []string{"blocked:10"}},
			{10_000, []string{"blocked:1", "blocked:4", "blocked:9.6", "blocked:16", "blocked:24", "blocked:32"}}},
		golden: []string{"blocked:10", "blocked:1", "blocked:4", "blocked:9.6", "blocked:16", "blocked:24",
			"blocked:32"},
		theory: []theory{
			{1_000_000, 4_000_000, exact, near, []string{"blocked:10"}},
			{300_000, 1_000_000, exact, near, []string{"blocked:1", "blocked:2.5", "blocked:4", "blocked:6",
				"blocked:8", "blocked:9.6", "blocked:12", "blocked:14", "blocked:16"}},
		},
		unmixed: []unmixedCase{{1000, 200_000, 0.5, []string{"blocked:10", "blocked:16"}},
			{100_000, 200_000, 0.05, []string{"blocked:10", "blocked:16"}}},
		hostile: []string{"blocked:10", "blocked:1", "blocked:32"},
	},
	"cuckoo": {
		suites: []suite{{1_000_000, []string{"cuckoo:12"}}, {5000, []string{"cuckoo:4,2", "cuckoo:4", "cuckoo:4,8",
			"cuckoo:8,2", "cuckoo:8", "cuckoo:8,8", "cuckoo:12,2", "cuckoo:12,8", "cuckoo:16", "cuckoo:17",
			"cuckoo:31,2", "cuckoo:32,2", "cuckoo:32", "cuckoo:32,8"}},
			{200_000, []string{"cuckoo:12,4,semisort"}}, {5000, semisorted}},
		golden: append([]string{"cuckoo:12", "cuckoo:4,2", "cuckoo:4", "cuckoo:4,8", "cuckoo:8,2", "cuckoo:8",
			"cuckoo:8,8", "cuckoo:12,2", "cuckoo:12,8", "cuckoo:16", "cuckoo:17", "cuckoo:31,2", "cuckoo:32,2",
			"cuckoo:32", "cuckoo:32,8", "cuckoo:12,4,semisort"}, semisorted...),
		theory: []theory{
			{1_000_000, 4_000_000, exact, near, []string{"cuckoo:12"}},
			{50_000, 1_000_000, exact, near, []string{"cuckoo:4,2", "cuckoo:4", "cuckoo:4,8", "cuckoo:6",
				"cuckoo:7,8", "cuckoo:8,2", "cuckoo:8", "cuckoo:8,8", "cuckoo:10", "cuckoo:12,2", "cuckoo:12,8",
				"cuckoo:16"}},
			{200_000, 2_000_000, exact, near, []string{"cuckoo:12,4,semisort"}},
			{50_000, 500_000, exact, near, []string{"cuckoo:5,4,semisort", "cuckoo:8,4,semisort",
				"cuckoo:16,4,semisort"}},
		},
		unmixed: []unmixedCase{{1000, 200_000, 0.05, []string{"cuckoo:8", "cuckoo:12,2"}},
			{100_000, 200_000, 0.03, []string{"cuckoo:8", "cuckoo:12,2"}},
			{10_000, 100_000, 0.05, []string{"cuckoo:8,4,semisort"}}},
		duplicates: []duplicates{{"cuckoo:12", 0.05}, {"cuckoo:12,4,semisort", 0.05}},
		hostile:    []string{"cuckoo:12", "cuckoo:4,2", "cuckoo:31,2", "cuckoo:32,8"},
	},
	"ribbon": {
		suites: []suite{{100_000, []string{"ribbon:7"}}, {5000, []string{"ribbon:1", "ribbon:1.5", "ribbon:3.999",
			"ribbon:4", "ribbon:6.72", "ribbon:12", "ribbon:31.5", "ribbon:32"}}},
		golden: []string{"ribbon:7", "ribbon:1", "ribbon:6.72", "ribbon:16", "ribbon:32"},
		theory: []theory{ // the size is off by a block of ten thousand keys
			{1_000_000, 4_000_000, 0.01, 0.01, []string{"ribbon:7", "ribbon:rate=0.01"}},
			{50_000, 1_000_000, 0.01, 0.01, []string{"ribbon:1", "ribbon:1.25", "ribbon:3", "ribbon:4.5", "ribbon:5",
				"ribbon:6.001", "ribbon:9.999", "ribbon:12"}},
		},
		unmixed: []unmixedCase{{1000, 50_000, 0.05, []string{"ribbon:7", "ribbon:4.5"}},
			{20_000, 50_000, 0.03, []string{"ribbon:7", "ribbon:4.5"}}},
		duplicates: []duplicates{{"ribbon:7", 0}},
		hostile:    []string{"ribbon:7", "ribbon:1", "ribbon:6.72", "ribbon:32"},
	},
	"gcs": {
		suites: []suite{{50_000, []string{"gcs:7"}},
			{5000, []string{"gcs:1", "gcs:1.5", "gcs:2", "gcs:6.644", "gcs:12", "gcs:31.5", "gcs:32"}}},
		golden: []string{"gcs:7", "gcs:1", "gcs:6.644", "gcs:16", "gcs:32"},
		theory: []theory{
			{200_000, 500_000, 0.025, 0.01, []string{"gcs:7"}},
			{50_000, 200_000, 0.025, 0.01, []string{"gcs:1", "gcs:1.25", "gcs:3", "gcs:4.5", "gcs:rate=0.01",
				"gcs:10", "gcs:12"}},
		},
		unmixed: []unmixedCase{{1000, 50_000, 0.05, []string{"gcs:7"}},
			{30_000, 50_000, 0.03, []string{"gcs:7"}}},
		duplicates: []duplicates{{"gcs:7", 0}},
		hostile:    []string{"gcs:7", "gcs:1", "gcs:6.644", "gcs:32"},
	},
	"quotient": {
		suites: []suite{{50_000, []string{"quotient:7"}}, {5000, []string{"quotient:2", "quotient:3", "quotient:8",
			"quotient:13", "quotient:31", "quotient:32"}}},
		golden: []string{"quotient:7", "quotient:2", "quotient:8", "quotient:13", "quotient:32"},
		theory: []theory{ // the size is off by a block of ten thousand keys
			{1_000_000, 2_000_000, 0.0065, 0.01, []string{"quotient:7"}},
			{50_000, 500_000, 0.0065, 0.01, []string{"quotient:2", "quotient:3", "quotient:5", "quotient:8",
				"quotient:10", "quotient:13"}},
		},
		unmixed: []unmixedCase{{1000, 50_000, 0.05, []string{"quotient:7"}},
			{20_000, 50_000, 0.03, []string{"quotient:7"}}},
		duplicates: []duplicates{{"quotient:7", 0}},
		hostile:    []string{"quotient:7", "quotient:2", "quotient:32"},
	},
	"xor": {
		suites: []suite{{300_000, []string{"xor:8"}},
			{5000, []string{"xor:4", "xor:7", "xor:9", "xor:16", "xor:17", "xor:31", "xor:32"}}},
		golden: []string{"xor:8", "xor:4", "xor:7", "xor:9", "xor:16", "xor:17", "xor:31", "xor:32"},
		theory: []theory{
			{1_000_000, 4_000_000, exact, near, []string{"xor:8"}},
			{50_000, 1_000_000, exact, near, []string{"xor:4", "xor:5", "xor:7", "xor:9", "xor:10", "xor:12",
				"xor:16"}},
		},
		unmixed: []unmixedCase{{1000, 200_000, 0.1, []string{"xor:8"}},
			{100_000, 200_000, 0.05, []string{"xor:9"}}},
		duplicates: []duplicates{{"xor:8", 0}},
		hostile:    []string{"xor:8", "xor:9", "xor:16", "xor:32"},
	},
	"fuse": {
		suites: []suite{{300_000, []string{"fuse:8"}}, {100_000, []string{"fuse:9,4"}}, {5000, []string{"fuse:4",
			"fuse:7", "fuse:16", "fuse:17", "fuse:31", "fuse:32", "fuse:4,4", "fuse:8,4", "fuse:16,4", "fuse:32,4"}}},
		golden: []string{"fuse:8", "fuse:4", "fuse:7", "fuse:16", "fuse:17", "fuse:31", "fuse:32", "fuse:4,4",
			"fuse:8,4", "fuse:9,4", "fuse:16,4", "fuse:32,4"},
		theory: []theory{
			{1_000_000, 4_000_000, exact, near, []string{"fuse:8"}},
			{1_000_000, 2_000_000, exact, near, []string{"fuse:8,4"}},
			{50_000, 1_000_000, exact, near, []string{"fuse:4", "fuse:5", "fuse:7", "fuse:9", "fuse:10", "fuse:12",
				"fuse:16", "fuse:4,4", "fuse:6,4", "fuse:11,4", "fuse:16,4"}},
		},
		unmixed: []unmixedCase{{1000, 200_000, 0.1, []string{"fuse:8", "fuse:9,4"}},
			{100_000, 200_000, 0.05, []string{"fuse:8", "fuse:9,4"}}},
		duplicates: []duplicates{{"fuse:8", 0}},
		hostile:    []string{"fuse:8", "fuse:9,4", "fuse:31", "fuse:16", "fuse:32,4"},
	},
}

// semisorted are specs with the fewest and the most bits, and some between.
var semisorted = []string{"cuckoo:5,4,semisort", "cuckoo:6,4,semisort", "cuckoo:8,4,semisort",
	"cuckoo:17,4,semisort", "cuckoo:32,4,semisort"}

// eachFilterFamily calls f with each family that writes bytes; one that the table lacks fails the
// test.
func eachFilterFamily(t *testing.T, f func(t *testing.T, family filterFamily)) {
	t.Helper()
	for _, name := range filterpolicy.Families() {
		if name == none.Name {
			continue
		}
		family, ok := filterFamilies[name]
		require.True(t, ok && len(family.suites)*len(family.golden)*len(family.theory)*len(family.unmixed)*
			len(family.hostile) != 0, "filterFamilies lacks %s, or a part of it", name)
		t.Run(name, func(t *testing.T) { f(t, family) })
	}
}

func TestFilterSuite(t *testing.T) {
	eachFilterFamily(t, func(t *testing.T, family filterFamily) {
		for _, s := range family.suites {
			for _, spec := range s.specs {
				Suite(t, spec, s.most)
			}
		}
	})
}

func TestFilterGolden(t *testing.T) {
	eachFilterFamily(t, func(t *testing.T, family filterFamily) { Golden(t, family.golden...) })
}

func TestFilterRateIsTheories(t *testing.T) {
	eachFilterFamily(t, func(t *testing.T, family filterFamily) {
		for _, c := range family.theory {
			for _, spec := range c.specs {
				MatchesTheory(t, spec, c.n, c.probes, c.size, c.rate)
			}
		}
	})
}

func TestFilterUnmixedHashesDoNoHarm(t *testing.T) {
	eachFilterFamily(t, func(t *testing.T, family filterFamily) {
		for _, c := range family.unmixed {
			for _, spec := range c.specs {
				MixesInput(t, spec, c.n, c.probes, c.share)
			}
		}
	})
}

// The families that do not know a key again, bloom and blocked, have no such specs.
func TestFilterDuplicatesCostNothing(t *testing.T) {
	eachFilterFamily(t, func(t *testing.T, family filterFamily) {
		for _, c := range family.duplicates {
			DuplicatesAreFree(t, c.spec, c.share)
		}
	})
}

func TestHostileFilters(t *testing.T) {
	eachFilterFamily(t, func(t *testing.T, family filterFamily) { Bounded(t, family.hostile...) })
	t.Run("semisorted", func(t *testing.T) { Bounded(t, semisortedAndPlain...) })
}

// semisortedAndPlain are decoded by one function.
var semisortedAndPlain = slices.Concat(semisorted, []string{"cuckoo:12,4,semisort", "cuckoo:12"})

func FuzzBloomDecode(f *testing.F)            { fuzzDecode(f, filterFamilies["bloom"].hostile...) }
func FuzzBlockedDecode(f *testing.F)          { fuzzDecode(f, filterFamilies["blocked"].hostile...) }
func FuzzCuckooDecode(f *testing.F)           { fuzzDecode(f, filterFamilies["cuckoo"].hostile...) }
func FuzzCuckooDecodeSemisorted(f *testing.F) { fuzzDecode(f, semisortedAndPlain...) }
func FuzzRibbonDecode(f *testing.F)           { fuzzDecode(f, filterFamilies["ribbon"].hostile...) }
func FuzzGcsDecode(f *testing.F)              { fuzzDecode(f, filterFamilies["gcs"].hostile...) }
func FuzzQuotientDecode(f *testing.F)         { fuzzDecode(f, filterFamilies["quotient"].hostile...) }
func FuzzXorDecode(f *testing.F)              { fuzzDecode(f, filterFamilies["xor"].hostile...) }
func FuzzFuseDecode(f *testing.F)             { fuzzDecode(f, filterFamilies["fuse"].hostile...) }
