// Package conformance holds the filters and sets of every family to the same checks. It has
// tests only. What a family alone promises is tested in the files named after it; what needs a
// family's internals is tested in its own package.
//
// All randomness is seeded, so a failure repeats. Golden files stay with their family.
package conformance
