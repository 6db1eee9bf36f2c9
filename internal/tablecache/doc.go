// Package tablecache opens the sorted files of stores, and keeps what their readers pin within a limit of memory that
// one store, or several, have for blocks, filters and indexes. If there is no room for all, the filters that save most
// reads are in memory, and the indexes of the tables in use.
package tablecache
