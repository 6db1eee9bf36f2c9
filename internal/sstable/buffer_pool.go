package sstable

import "sync"

// readBuffers hold blocks as stored, between read and decompression; blockBuffers
// hold decoded blocks that the cache does not take.
var readBuffers, blockBuffers bufferPool

// maxPooled is the largest buffer that goes back to a pool: a giant one would be held for blocks of any size.
const maxPooled = 1 << 20

// A bufferPool keeps buffers for the next block.
type bufferPool struct{ pool sync.Pool }

func (p *bufferPool) get() *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return b
	}
	return new([]byte)
}

func (p *bufferPool) put(b *[]byte) {
	if cap(*b) <= maxPooled {
		p.pool.Put(b)
	}
}
