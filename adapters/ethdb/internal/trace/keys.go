package main

import (
	"crypto/sha3"
	"encoding/binary"
)

// Sizes of values, in bytes, about as on the main network; bodies are smaller.
const (
	headerSize  = 600
	bodySize    = 16 << 10
	accountSize = 70
	slotSize    = 33
	branchSize  = 532 // a node with sixteen hashes
	leafSize    = 250 // one above a few accounts
)

// Keys are those of go-ethereum's rawdb, with the trie's nodes under their hashes.

func headerKey(number uint64, hash []byte) []byte { return numbered('h', number, hash) }
func bodyKey(number uint64, hash []byte) []byte   { return numbered('b', number, hash) }
func numberKey(block []byte) []byte               { return append([]byte{'H'}, block...) }
func accountKey(i uint64) []byte                  { return append([]byte{'a'}, accountHash(i)...) }
func slotKey(i, slot uint64) []byte {
	return append(append([]byte{'o'}, accountHash(i)...), hash('s', slot, 0)...)
}
func transactionKey(block, i uint64) []byte { return append([]byte{'l'}, hash('t', block, i)...) }

// nodeKey is that of a node as a block wrote it.
func nodeKey(p path, block uint64) []byte {
	return hash('n', uint64(p.depth)<<32|uint64(p.nibbles), block)
}

func blockHash(number uint64) []byte { return hash('b', number, 0) }
func accountHash(i uint64) []byte    { return hash('a', i, 0) }

func numbered(kind byte, number uint64, hash []byte) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{kind}, number), hash...)
}

// hash stands for Keccak-256 of a thing, which a letter and two numbers name.
func hash(kind byte, a, b uint64) []byte {
	text := binary.BigEndian.AppendUint64([]byte{kind}, a)
	sum := sha3.Sum256(binary.BigEndian.AppendUint64(text, b))
	return sum[:]
}
