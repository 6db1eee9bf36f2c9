package sstable

import (
	"slices"
	"sync"
)

// A readingList has the blocks that are being read for the cache. Others who want one of them
// wait, and find it in the cache: however many come to a cold block, it is read once. It is as
// long as there are goroutines that read, and nobody looks at it for a cached block.
type readingList struct {
	mu      sync.Mutex
	ended   sync.Cond // a block has left the list
	blocks  []int
	waiting int // goroutines
}

func (l *readingList) init() { l.ended.L = &l.mu }

// begin enters a block and reports true. If somebody reads the block, it waits for the end of
// that and reports false.
func (l *readingList) begin(block int) bool {
	l.mu.Lock()
	read := !slices.Contains(l.blocks, block)
	if read {
		l.blocks = append(l.blocks, block)
	} else {
		l.waiting++
		for slices.Contains(l.blocks, block) {
			l.ended.Wait()
		}
		l.waiting--
	}
	l.mu.Unlock()
	return read
}

// end takes a block off the list. It is in the cache, unless it could not be read or
// the cache had no room.
func (l *readingList) end(block int) {
	l.mu.Lock()
	last := len(l.blocks) - 1
	l.blocks[slices.Index(l.blocks, block)] = l.blocks[last]
	l.blocks = l.blocks[:last]
	wake := l.waiting > 0
	l.mu.Unlock()
	if wake {
		l.ended.Broadcast()
	}
}
