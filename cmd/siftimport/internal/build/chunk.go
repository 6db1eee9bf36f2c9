package build

import (
	"context"
	"encoding/binary"
	"sync"
	"time"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/source"
)

// A chunk is a row of entries on its way from the reader to the builder of their file:
//
//	uvarint key length, uvarint value length, key, value, ...
type chunk struct {
	data     []byte
	count    int
	expiries []expiry // few entries have one
}

type expiry struct {
	entry int // its number in the chunk
	at    time.Time
}

const (
	chunkSize = 256 << 10
	chunkRoom = chunkSize + 8<<10 // for the entry that takes it beyond
	maxKept   = 4 * chunkSize     // a larger one is left to the garbage collector
)

// A pool has the chunks that are in use at most. The one that came back last is given first: it is in the processor's
// cache, and what was never needed is never made.
type pool struct {
	room chan struct{} // has an element for each chunk that may be taken

	mu   sync.Mutex
	free []*chunk
}

func newPool(n int) *pool {
	p := &pool{room: make(chan struct{}, n)}
	for range n {
		p.room <- struct{}{}
	}
	return p
}

// get waits for a chunk, which is empty, or for the end of ctx.
func (p *pool) get(ctx context.Context) (*chunk, error) {
	select {
	case <-p.room:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		c := p.free[n-1]
		p.free = p.free[:n-1]
		return c, nil
	}
	return &chunk{data: make([]byte, 0, chunkRoom)}, nil
}

// put gives a chunk back.
func (p *pool) put(c *chunk) {
	c.reset()
	p.mu.Lock()
	p.free = append(p.free, c)
	p.mu.Unlock()
	p.room <- struct{}{}
}

func (c *chunk) add(e *source.Entry) {
	c.data = binary.AppendUvarint(c.data, uint64(len(e.Key)))
	c.data = binary.AppendUvarint(c.data, uint64(len(e.Value)))
	c.data = append(append(c.data, e.Key...), e.Value...)
	if !e.Expiry.IsZero() {
		c.expiries = append(c.expiries, expiry{c.count, e.Expiry})
	}
	c.count++
}

// each calls f with the entries until it fails.
func (c *chunk) each(f func(key, value []byte, until time.Time) error) error {
	data, expiries := c.data, c.expiries
	for i := range c.count {
		k, n := binary.Uvarint(data)
		v, m := binary.Uvarint(data[n:])
		data = data[n+m:]
		until := time.Time{}
		if len(expiries) > 0 && expiries[0].entry == i {
			until, expiries = expiries[0].at, expiries[1:]
		}
		if err := f(data[:k:k], data[k:k+v:k+v], until); err != nil {
			return err
		}
		data = data[k+v:]
	}
	return nil
}

func (c *chunk) reset() {
	if cap(c.data) > maxKept {
		c.data = make([]byte, 0, chunkRoom)
	}
	c.data, c.count, c.expiries = c.data[:0], 0, c.expiries[:0]
}
