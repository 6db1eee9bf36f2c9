package sstable

import "encoding/binary"

// Slots are a block's hash table from user keys to restarts: open addressing with linear probing. A slot is
//
//	restart      uint8  number of the restart interval in which the first version
//	                    of a key stands
//	fingerprint  uint8  bits 32-39 of the key's hash
//
// or slotEmpty. A key's slot is the first free one, beginning at slotOf and wrapping round, when
// all smaller keys have theirs. Slots that a lookup passes before are of smaller keys, and lead to
// no place after the key's newest version. A probe ends at a free slot, or when it has seen them
// all. The hash is filterpolicy.Hash, with which the filter was asked already.
//
// RocksDB's data block hash index is the idea. Its buckets hold the restart alone, and a mark where
// keys of several intervals meet, which sends a third of the lookups to a binary search. With a
// fingerprint, keys can be next to each other, and for 255 of 256 absent keys no entry is read.
type slots []byte

const (
	slotSize     = 2
	slotEmpty    = 0xffff
	slotRestarts = 0xff // a table leads to at most this many restarts
	maxSlots     = 1<<16 - 1
)

// slotsFor returns the number of slots for a number of keys: two thirds are used. With
// fewer, lookups of absent keys meet more fingerprints; more cost space.
func slotsFor(keys int) int { return keys + keys/2 + 1 }

// slotOf returns the slot of n at which probing begins.
func slotOf(hash uint64, n int) int { return int(uint64(uint32(hash)) * uint64(n) >> 32) }

func fingerprintOf(hash uint64) byte { return byte(hash >> 32) }

// appendSlots appends the table of keys to dst.
func appendSlots(dst []byte, keys []keyHash) []byte {
	at, n := len(dst), slotsFor(len(keys))
	for range n {
		dst = append(dst, 0xff, 0xff)
	}
	s := slots(dst[at:])
	for _, k := range keys {
		i := slotOf(k.hash, n)
		for s.at(i) != slotEmpty {
			if i++; i == n {
				i = 0
			}
		}
		s[slotSize*i], s[slotSize*i+1] = byte(k.restart), fingerprintOf(k.hash)
	}
	return dst
}

func (s slots) at(i int) uint16 { return binary.LittleEndian.Uint16(s[slotSize*i:]) }

// A slotProbe finds the restarts of the keys with one hash, and of few others.
type slotProbe struct {
	slots       slots
	fingerprint byte
	at, left    int // the next slot, and how many have not been looked at
}

func (s slots) probe(hash uint64) slotProbe {
	n := len(s) / slotSize
	return slotProbe{slots: s, fingerprint: fingerprintOf(hash), at: slotOf(hash, n), left: n}
}

// next returns the next restart at which a key with the hash may be.
func (p *slotProbe) next() (restart int, ok bool) {
	for ; p.left > 0; p.left-- {
		v := p.slots.at(p.at)
		if v == slotEmpty {
			return 0, false
		}
		if p.at++; p.at == len(p.slots)/slotSize {
			p.at = 0
		}
		if byte(v>>8) == p.fingerprint {
			p.left--
			return int(v & 0xff), true
		}
	}
	return 0, false
}
