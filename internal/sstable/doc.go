// Package sstable reads and writes sorted files: blocks, filter, index, properties and footer, over internal keys.
// Package siftkv/sstable is its public face and has the picture of a file; docs/format.md has every byte.
package sstable
