// Package remote keeps the files of a store in an object store: sorted tables, which are objects that are written
// once and read in ranges.
//
// Requests are what an object store is paid for, so every method says how many it sends. They are not counted here:
// see objstore.WithCounters.
package remote
