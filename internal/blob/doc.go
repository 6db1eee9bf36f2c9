// Package blob has files of values that are too large to be rewritten with their keys. A file is written once, from
// front to back, in the order of the keys; tables have handles of the values in it. A record has its key and its
// sequence number too, so that a read can check the handle, and a repair can rebuild a table.
package blob
