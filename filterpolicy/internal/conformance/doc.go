// Package conformance holds the filters and sets of every family to the same checks. It has
// tests only. The table filterFamilies (filters_test.go) says which specs are checked, and how
// exactly; what a family alone promises is tested in the files named after it, and what needs a
// family's internals in its own package.
//
// All randomness is seeded, so a failure repeats. Golden files stay with their family.
package conformance
