package conformance

import "testing"

// Suite runs everything that holds for a spec at any size, with filters of up to
// most keys.
func Suite(t *testing.T, spec string, most int) {
	t.Helper()
	t.Run(spec+"/no false negatives", func(t *testing.T) { NoFalseNegatives(t, spec, most) })
	for _, part := range []struct {
		name string
		run  func(t *testing.T, spec string)
	}{
		{"hostility", Hostility},
		{"empty", Empty},
		{"duplicates", Duplicates},
		{"reuse", Reuse},
		{"alignment", Alignment},
		{"no allocations", NoAllocations},
		{"damage", Damage},
		{"forgery", Forgery},
	} {
		t.Run(spec+"/"+part.name, func(t *testing.T) { part.run(t, spec) })
	}
}
