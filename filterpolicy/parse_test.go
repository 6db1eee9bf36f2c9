package filterpolicy_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/property"
)

func TestParse(t *testing.T) {
	for spec, want := range map[string]struct{ name, text string }{
		"none":            {"none", "none"},
		"bloom:10":        {"bloom", "bloom:10"},
		"bloom:9.6":       {"bloom", "bloom:9.6"},
		"bloom:010.500":   {"bloom", "bloom:10.5"},
		"bloom:64":        {"bloom", "bloom:64"},
		"blocked:10":      {"blocked", "blocked:10"},
		"blocked:1":       {"blocked", "blocked:1"},
		"blocked:9.6":     {"blocked", "blocked:9.6"},
		"cuckoo:12":       {"cuckoo", "cuckoo:12"},
		"cuckoo:12,4":     {"cuckoo", "cuckoo:12"},
		"cuckoo:4,2":      {"cuckoo", "cuckoo:4,2"},
		"cuckoo:32,8":     {"cuckoo", "cuckoo:32,8"},
		"cuckoo:12,8":     {"cuckoo", "cuckoo:12,8"},
		"blocked:15.125":  {"blocked", "blocked:15.125"},
		"blocked:32.0":    {"blocked", "blocked:32"},
		"bloom:00012.340": {"bloom", "bloom:12.34"},
		"xor:08":          {"xor", "xor:8"},
		"fuse:8,3":        {"fuse", "fuse:8"},
		"fuse:8,4":        {"fuse", "fuse:8,4"},
		"ribbon:6.720":    {"ribbon", "ribbon:6.72"},
		"gcs:7":           {"gcs", "gcs:7"},
		"quotient:7":      {"quotient", "quotient:7"},

		"bloom:rate=0.01":              {"bloom", "bloom:9.593"},
		"blocked:rate=0.01":            {"blocked", "blocked:9.918"},
		"cuckoo:rate=0.001":            {"cuckoo", "cuckoo:13"},
		"cuckoo:rate=0.001,2":          {"cuckoo", "cuckoo:12,2"},
		"cuckoo:rate=0.001,4,semisort": {"cuckoo", "cuckoo:13,4,semisort"},
		"quotient:rate=0.01":           {"quotient", "quotient:7"},
		"xor:rate=0.004":               {"xor", "xor:8"},
		"fuse:rate=0.004,4":            {"fuse", "fuse:8,4"},
		"ribbon:rate=0.01":             {"ribbon", "ribbon:6.72"},
		"gcs:rate=0.01":                {"gcs", "gcs:6.644"},
	} {
		p, err := filterpolicy.Parse(spec)
		require.NoError(t, err, spec)
		require.Equal(t, want.name, p.Name(), spec)
		require.Equal(t, want.text, p.String(), spec)
		again, err := filterpolicy.Parse(p.String())
		require.NoError(t, err, spec)
		require.True(t, p == again, "%s is not equal to itself", spec)
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	const families = "unknown family; the families are none, bloom:BITS, blocked:BITS, cuckoo:BITS,SLOTS"
	for spec, want := range map[string]string{
		"":          families,
		":10":       families,
		"bloem:10":  families,
		"Bloom:10":  families,
		" bloom:10": families,
		"bloom 10":  families,
		"none:":     `its form is none; for example "none"`,
		"none:1":    `no filter has no parameters; for example "none"`,
		"bloom":     `its form is bloom:BITS; for example "bloom:10"`,
		"bloom:":    `its form is bloom:BITS; for example "bloom:10"`,
		"bloom:0": `bits per key must be a number from 1 to 64 ` +
			`with at most three decimals, not "0"; for example "bloom:10"`,
		"bloom:64.001":  `bits per key must be a number from 1 to 64`,
		"bloom:ten":     `bits per key must be a number from 1 to 64`,
		"bloom:10 ":     `bits per key must be a number from 1 to 64`,
		"bloom:10:1":    `bits per key must be a number from 1 to 64`,
		"bloom:9.58496": `with at most three decimals, not "9.58496"`,
		"blocked":       `its form is blocked:BITS; for example "blocked:10"`,
		"blocked:33":    `bits per key must be a number from 1 to 32`,
		"blocked:10,4":  `bits per key must be a number from 1 to 32`,
		"blocked:-10":   `bits per key must be a number from 1 to 32`,
		"cuckoo":        `its form is cuckoo:BITS,SLOTS; for example "cuckoo:12,4"`,
		"cuckoo:3":      `fingerprint bits must be a whole number from 4 to 32, not "3"`,
		"cuckoo:33":     `fingerprint bits must be a whole number from 4 to 32`,
		"cuckoo:12.5":   `fingerprint bits must be a whole number from 4 to 32`,
		"cuckoo:,4":     `fingerprint bits must be a whole number from 4 to 32`,
		"cuckoo:12,":    `slots per bucket must be 2, 4 or 8, not ""`,
		"cuckoo:12,3":   `slots per bucket must be 2, 4 or 8, not "3"`,
		"cuckoo:12,16":  `slots per bucket must be 2, 4 or 8`,
		"cuckoo:12,+4":  `slots per bucket must be 2, 4 or 8`,
		"cuckoo:12,4,1": `slots per bucket must be 2, 4 or 8`,
		"cuckoo:rate=1": `rate must be a decimal fraction from 1.77e-09 to 0.5, such as 0.01, not "1"`,
		"bloom:rate=1%": `rate must be a decimal fraction from 4.43e-14 to 0.5, such as 0.01, not "1%"`,
		"blocked:rate=": `rate must be a decimal fraction from 5.38e-06 to 0.5, such as 0.01, not ""`,
		"bloom:Rate=.1": `bits per key must be a number from 1 to 64`,
		"quotient:rate": `remainder bits must be a whole number from 2 to 32`,
		"none:rate=0.1": `no filter has no parameters`,
	} {
		p, err := filterpolicy.Parse(spec)
		require.Nil(t, p, spec)
		require.ErrorIs(t, err, filterpolicy.ErrBadSpec, spec)
		require.ErrorContains(t, err, want, spec)
		require.ErrorContains(t, err, "; for example ", spec)
	}
}

func TestParseOfAnyText(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		spec := rapid.OneOf(rapid.String(),
			rapid.StringMatching(`(none|bloom|blocked|cuckoo|xor|fuse|ribbon|gcs|quotient):?(rate=0)?`+
				`[0-9.,]{0,6}(,4,semisort)?`)).Draw(t, "spec")
		p, err := filterpolicy.Parse(spec)
		if err != nil {
			require.ErrorIs(t, err, filterpolicy.ErrBadSpec)
			return
		}
		again, err := filterpolicy.Parse(p.String())
		require.NoError(t, err)
		require.True(t, p == again)
	})
}

func TestPoliciesCompare(t *testing.T) {
	specs := []string{"none", "bloom:10", "bloom:10.1", "blocked:10", "cuckoo:10", "cuckoo:10,2",
		"cuckoo:10,4,semisort", "xor:10", "fuse:10", "fuse:10,4", "ribbon:10", "gcs:10", "quotient:10"}
	for i, a := range specs {
		for j, b := range specs {
			p, err := filterpolicy.Parse(a)
			require.NoError(t, err)
			q, err := filterpolicy.Parse(b)
			require.NoError(t, err)
			require.Equal(t, i == j, p == q, "%s, %s", a, b)
		}
	}
}
