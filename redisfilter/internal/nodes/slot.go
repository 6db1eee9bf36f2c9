package nodes

import "strings"

// Slots is the number of hash slots of a Redis Cluster.
const Slots = 16384

// Slot returns the slot of a key: CRC-16/XMODEM of its hash tag, or of all of it if it has none
// (Redis Cluster specification, "Key distribution model").
func Slot(key string) int {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if n := strings.IndexByte(key[open+1:], '}'); n > 0 {
			key = key[open+1 : open+1+n]
		}
	}
	crc := uint16(0)
	for i := range len(key) {
		crc = crc<<8 ^ crcOf[byte(crc>>8)^key[i]]
	}
	return int(crc) % Slots
}

// crcOf is the CRC-16/XMODEM of each byte.
var crcOf = func() (table [256]uint16) {
	for b := range table {
		crc := uint16(b) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*0x1021
		}
		table[b] = crc
	}
	return table
}()
