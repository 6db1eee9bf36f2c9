package base

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the CRC-32C of data bound to a place. The place (two words: which file, and where in it) is hashed
// as if it stood before the data, so that good bytes in a wrong place fail as damaged ones do.
func Checksum(file, offset uint64, data []byte) uint32 {
	return crc32.Update(placeSum(file, offset), castagnoli, data)
}

// placeSum is the CRC of 16 little-endian bytes. The array does not escape: the checksum of a block costs no
// allocation.
func placeSum(file, offset uint64) uint32 {
	// A table-driven CRC over sixteen bytes is as fast here as the library's vector code, and keeps the bytes off the
	// heap.
	crc := ^uint32(0)
	for range 8 {
		crc = castagnoli[byte(crc)^byte(file)] ^ crc>>8
		file >>= 8
	}
	for range 8 {
		crc = castagnoli[byte(crc)^byte(offset)] ^ crc>>8
		offset >>= 8
	}
	return ^crc
}

// ChecksumMore extends a checksum by the bytes that follow.
func ChecksumMore(sum uint32, data []byte) uint32 { return crc32.Update(sum, castagnoli, data) }
