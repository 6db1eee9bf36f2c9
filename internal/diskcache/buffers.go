package diskcache

import "sync"

// pageBuffers hold pages while they are checked.
var pageBuffers bufferPool

type bufferPool struct{ pool sync.Pool }

func (b *bufferPool) get(n int) *[]byte {
	buf, ok := b.pool.Get().(*[]byte)
	if !ok || cap(*buf) < n {
		made := make([]byte, n)
		return &made
	}
	*buf = (*buf)[:n]
	return buf
}

func (b *bufferPool) put(buf *[]byte) { b.pool.Put(buf) }
