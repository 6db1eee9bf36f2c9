// Package filtertest is the suite that every family of filters has to pass. Family
// packages call it with their specs, so that a new family is held to all of it with
// a few lines.
//
// All randomness is seeded, so a failure repeats.
package filtertest
