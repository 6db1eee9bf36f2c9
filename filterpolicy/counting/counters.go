package counting

// counters is an array of counters of one width. A counter of four bits is the
// low half of a byte if its index is even, else the high half.
type counters struct {
	cells  []byte
	narrow bool // four bits, else eight
}

func cellsLen(n uint64, narrow bool) uint64 {
	if narrow {
		return (n + 1) / 2
	}
	return n
}

// top is the value at which a counter saturates.
func (c *counters) top() byte {
	if c.narrow {
		return 15
	}
	return 255
}

func (c *counters) get(i uint64) byte {
	if c.narrow {
		return c.cells[i/2] >> (i % 2 * 4) & 15
	}
	return c.cells[i]
}

// up adds one, unless the counter is saturated.
func (c *counters) up(i uint64) {
	if c.get(i) != c.top() {
		c.add(i, 1)
	}
}

// down subtracts one, unless the counter is saturated. It must not be zero.
func (c *counters) down(i uint64) {
	if c.get(i) != c.top() {
		c.add(i, 255) // -1
	}
}

// add adds d, modulo 256. The counter must not overflow, so that a carry of its
// neighbour's half cannot happen.
func (c *counters) add(i uint64, d byte) {
	if c.narrow {
		c.cells[i/2] += d << (i % 2 * 4)
		return
	}
	c.cells[i] += d
}
