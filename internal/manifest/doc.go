// Package manifest keeps the list of a store's files, and the names that files have.
//
// The list is a log of version edits (package wal): the first record of a manifest describes the whole store, every
// later one a change. A file named CURRENT says which manifest is in force; it is replaced in one rename, so that a
// store is always described by one whole manifest.
package manifest
