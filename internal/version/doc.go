// Package version knows which tables a store has, and which blob files they have values in. A Version is an immutable
// list of them, by level and sorted run, that readers search without locks. Applying a manifest edit makes the next
// one, which shares every table and tree node that did not change. A History knows which versions are in use. The store
// counts references to versions and hands those without to a Cleaner. That closes unused tables, and removes files
// unless readers in other processes need them.
package version
