package main

import (
	"encoding/binary"
	"iter"
)

// A path leads to a node of the trie: so many nibbles of the hash of an account.
type path struct {
	depth   int
	nibbles uint32
}

// A trie has the nodes of the state above accounts, all of which it has from the beginning. Each change of a node
// puts it under another hash, which is made of the block that wrote it.
type trie struct {
	depth   int             // of the lowest nodes
	written map[path]uint64 // the block that wrote a node last, if it is not 0
}

// newTrie returns a trie with a few accounts below each of the lowest nodes.
func newTrie(accounts int) *trie {
	t := &trie{written: make(map[path]uint64)}
	for nodes := 16; nodes <= accounts; nodes *= 16 {
		t.depth++
	}
	return t
}

func (t *trie) nodes() iter.Seq[path] {
	return func(yield func(path) bool) {
		for depth := range t.depth + 1 {
			for nibbles := range uint32(1) << (4 * depth) {
				if !yield(path{depth, nibbles}) {
					return
				}
			}
		}
	}
}

// above returns the nodes from the root to an account.
func (t *trie) above(account []byte) []path {
	paths := make([]path, t.depth+1)
	for depth := range paths {
		paths[depth] = path{depth, binary.BigEndian.Uint32(account) >> (32 - 4*depth)}
	}
	return paths
}

// size returns that of a node, in bytes.
func (t *trie) size(p path) int {
	if p.depth == t.depth {
		return leafSize
	}
	return branchSize
}
