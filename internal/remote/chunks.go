package remote

import (
	"io"
	"sync"
)

// chunkSize is how much memory a file that is being written takes at a time: less than a file has, so that little
// is wasted, and nothing is copied as it grows.
const chunkSize = 1 << 20

var chunkPool = sync.Pool{New: func() any { return new([chunkSize]byte) }}

// chunks are bytes in memory that are appended to.
type chunks struct {
	list []*[chunkSize]byte
	size int64
}

func (c *chunks) write(p []byte) {
	for len(p) > 0 {
		at := int(c.size % chunkSize)
		if at == 0 {
			c.list = append(c.list, chunkPool.Get().(*[chunkSize]byte))
		}
		n := copy(c.list[len(c.list)-1][at:], p)
		c.size += int64(n)
		p = p[n:]
	}
}

func (c *chunks) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) && off < c.size {
		chunk := c.list[off/chunkSize][:min(chunkSize, c.size-off/chunkSize*chunkSize)]
		m := copy(p[n:], chunk[off%chunkSize:])
		n, off = n+m, off+int64(m)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// release returns the memory to the pool.
func (c *chunks) release() {
	for _, chunk := range c.list {
		chunkPool.Put(chunk)
	}
	*c = chunks{}
}
