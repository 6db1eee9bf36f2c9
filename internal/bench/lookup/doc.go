// Package lookup says what a run of lookups cost: repetitions with their counters,
// percentiles, false-positive rates beside theory, and the relations that counters
// must keep among each other.
package lookup
