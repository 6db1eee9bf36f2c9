// Package base holds the words that every layer of the store speaks: internal keys and their order, sequence numbers,
// kinds, checksums, and the errors that callers match.
//
// An internal key is one version of a user key:
//
//	user key | trailer = sequence number (56 bits) << 8 | kind (8 bits)
//
// Internal keys sort by user key ascending and then by trailer descending: the newest version of a key comes first,
// which is what every lookup wants.
package base
