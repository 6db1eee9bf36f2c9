// Package blob has files of values that are too large to be rewritten with the keys that they
// belong to. A file is written once, from front to back, in the order of the keys; tables have
// handles of the values in it. A record has its key and its sequence number too, so that a read
// can tell whether the handle is right, and a repair can make a table anew.
package blob
