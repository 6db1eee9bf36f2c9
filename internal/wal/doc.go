// Package wal writes and reads logs of records: the write-ahead log of the
// store, and its manifest.
//
// A log is appended to by one Writer, from its creation to its end, and read
// back by a Reader, which returns the records in order and reports exactly how
// the log ends: cleanly, at a record's end, with a torn tail, or in damage. What
// to make of it, and whether to go on behind damage, is the caller's to decide.
//
// # Format
//
// All numbers are little-endian. A log begins with a header:
//
//	0   magic     8 bytes  "SIFTWAL\x00"
//	8   version   u32      1
//	12  zero      u32
//	16  log id    u64      number of the file, unique in its store
//	24  checksum  u32      CRC-32C of bytes 0..23, at place (0, 0)
//	28  zero      u32
//
// This header keeps its layout in all versions, so that a log of a newer version
// is told from a damaged one.
//
// The file is divided into blocks of 32 KiB; the header is in the first. After
// the header comes a sequence of fragments:
//
//	0   checksum  u32      CRC-32C of all that follows, at place (log id, file offset of the fragment)
//	4   length    u16      of the payload
//	6   type      u8       1 full, 2 first, 3 middle, 4 last, 5 sync mark, 6 end of log
//	7   payload
//
// "At place (a, b)" means that the CRC starts with the 16 bytes of a and b as two
// u64. A fragment that belongs to another log, or to another place in this one,
// fails its checksum as a damaged one does.
//
// A fragment does not cross the end of a block. If fewer than 15 bytes are left
// in a block, they are zero and the next fragment starts in the next block:
// every block but the first begins with a fragment, where a reader can take up
// the log again. A record is the payload of one full fragment, or of a first,
// any number of middle, and a last one that follow each other.
//
// The payload of a sync mark is a u64: everything in the file before that offset
// had been made durable before the mark was written. Marks stand between
// records. They tell bytes that a power cut may have torn from bytes that it
// cannot have: damage before a marked offset is not a torn tail.
//
// The end of log is the last fragment of a log that was closed, and the file's
// last bytes. Its payload is that of a sync mark.
//
// # Sources
//
// Blocks and fragments are those of LevelDB's log format; binding checksums to a
// log is RocksDB's and Pebble's "recyclable" format, and recording what was
// synced is an idea of Pebble's.
package wal
