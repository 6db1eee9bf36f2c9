// Package settest is what every set of an application has to pass, whatever its
// family: it holds its keys at the promised rate of false positives, its bytes
// come back, damage to them is refused, and forged ones do no harm.
//
// All randomness is seeded, so a failure repeats.
package settest
