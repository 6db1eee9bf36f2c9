package filtertest

import "testing"

// Suite runs everything that holds for a spec at any size, with filters of up to
// most keys.
func Suite(t *testing.T, spec string, most int) {
	t.Helper()
	for _, part := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"no false negatives", func(t *testing.T) { NoFalseNegatives(t, spec, most) }},
		{"hostility", func(t *testing.T) { Hostility(t, spec, 5000) }},
		{"empty", func(t *testing.T) { Empty(t, spec) }},
		{"duplicates", func(t *testing.T) { Duplicates(t, spec) }},
		{"reuse", func(t *testing.T) { Reuse(t, spec) }},
		{"alignment", func(t *testing.T) { Alignment(t, spec) }},
		{"no allocations", func(t *testing.T) { NoAllocations(t, spec) }},
		{"damage", func(t *testing.T) { Damage(t, spec) }},
		{"forgery", func(t *testing.T) { Forgery(t, spec) }},
		{"golden", func(t *testing.T) { Golden(t, spec) }},
	} {
		t.Run(spec+"/"+part.name, part.run)
	}
}
