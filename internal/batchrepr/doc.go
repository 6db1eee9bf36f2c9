// Package batchrepr is the representation of a batch of writes: the record of a batch
// in the write-ahead log, which is also how a batch is stored in memory until it is
// committed. A record is a header and its entries; numbers are little-endian.
//
//	seq    uint64  sequence number of the first entry; the others count up
//	count  uint32  number of entries
//	entries, each:
//	  kind   uint8   0 delete, 1 set, 2 range delete, 3 merge, 4 set with expiry,
//	         5 set of a blob value, 6 the same with expiry
//	  key    length uvarint, bytes
//	  value  length uvarint, bytes; not for a delete. A range delete's value is
//	         its end: 0x00, or 0x01 and the key. A merge's value is the operand;
//	         that of a set with expiry begins with the expiry, a uint64. A blob value
//	         has its handle here (package blob), after the expiry if it has one
//
// A Writer makes a record, a Reader decodes one. A Reader accepts any bytes: it
// allocates nothing in proportion to them, and what is not a record is an error.
package batchrepr
