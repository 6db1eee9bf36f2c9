package build

import (
	"encoding/binary"
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
	maxKept   = 4 * chunkSize // a larger one is left to the garbage collector
)

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
		c.data = nil
	}
	c.data, c.count, c.expiries = c.data[:0], 0, c.expiries[:0]
}
