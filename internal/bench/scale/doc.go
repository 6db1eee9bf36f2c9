// Package scale shows how the cost of a lookup, and the memory that is needed per
// key, grow with the number of keys.
//
// A lookup makes a number of dependent loads from memory that should not depend on
// the number of keys; what a load costs does, since more of it comes from further
// away. So the time of one such load, from as much memory as the store has pinned, is
// measured beside the lookups.
package scale
