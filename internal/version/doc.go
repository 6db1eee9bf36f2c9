// Package version knows which tables a store has, and which blob files they have values in. A
// Version is an immutable list of them, by level and sorted run, that readers search without
// locks; applying a manifest edit makes the next one, which shares the tables that stay and all
// of the structure around them that did not change. A Table opens its reader on first use
// through the store's TableCache, which keeps the memory of all readers within a limit. A
// History knows which versions are in use. The store counts references to versions and hands
// those without to a Cleaner, which closes the tables that nobody uses any more, and removes
// files unless readers in other processes need them.
package version
