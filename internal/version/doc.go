// Package version knows which tables a store has. A Version is an immutable list of them,
// by level and sorted run, that readers search without locks; applying a manifest edit
// makes the next one, which shares the tables that stay. A Table opens its reader on first
// use through the store's TableCache, which keeps the memory of all readers within a limit.
// The package neither counts references nor removes files: the store does, under its mutex.
package version
