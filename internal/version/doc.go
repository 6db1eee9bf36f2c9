// Package version knows which tables a store has. A Version is an immutable list of them,
// by level and sorted run, that readers search without locks; applying a manifest edit
// makes the next one, which shares the tables that stay. A Table opens its reader on first
// use through the store's TableCache, which keeps the memory of all readers within a limit.
// The store counts references, under its mutex, and hands tables that nobody uses any more
// to a Cleaner, which removes files unless readers in other processes need them.
package version
