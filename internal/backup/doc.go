// Package backup writes, verifies and restores the stream of a backup. It has the description of the whole store, and
// those sorted files and blob files, unchanged, that an earlier backup does not have. Write reads a store's directory
// and Restore makes one; neither needs the store to be more than files and a version edit.
//
// A stream begins with a preamble:
//
//	0   magic     8 bytes  "SIFTBAK\n"
//	8   version   u32      1; 2 if the store has blob files
//	12  zero      u32
//	16  id        u64      a random number of the backup
//	24  checksum  u32      CRC-32C of bytes 0..23, at place (0, 0)
//	28  zero      u32
//
// Then come frames:
//
//	0   checksum  u32      CRC-32C of all that follows, at place (id, offset of the frame in the stream)
//	4   length    u32      of the payload, at most 256 KiB
//	8   type      u8       1 header, 2 file, 3 data, 4 description, 5 end, 6 blob file
//	9   payload
//
// First comes a header. Then, for each file, come a file frame (for a blob file a blob file frame, in a stream of
// version 2) and data frames with all of its bytes. Any number of description frames and the end follow. Numbers are
// little-endian.
//
//	header       u64 store id, parent, parent offset, files, bytes, last sequence number
//	file         u64 number, table id, size in bytes
//	blob file    u64 number, id, size in bytes
//	data         bytes of the file
//	description  a piece of a version edit (package manifest) that adds every table
//	             and every blob file of the store
//	end          the last piece
//
// The parent is the id of the backup that this one goes on from, zero for a full one; of the parent's stream everything
// before the parent offset must have been restored. Files and bytes count what is in the stream.
//
// A stream may be cut off after any file. The rest can be read on its own if its id and offset are known: every frame
// is bound to both.
//
// A mark says what a stream, or the beginning of one, holds together with those that it goes on from:
//
//	0   magic     8 bytes  "SIFTMRK\n"
//	8   version   u32      1
//	12  count     u32      of files
//	16  store id, backup id, offset in the stream, last sequence number: u64
//	48  files, ascending:  number u64, id of the table or blob file u64
//	    checksum  u32      CRC-32C of all before it, at place (0, 0)
package backup
