// Package filters measures filter families on their own: what they cost to build
// and to ask, how much space they take, and how often they err, next to the
// libraries that a Go programmer would otherwise pick, on the same hashes in the
// same run.
package filters
