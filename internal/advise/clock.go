package advise

// A clock is a block cache without the bytes of blocks: see package cache. A hit marks its block.
// The oldest block goes unless it is marked; a marked one becomes the newest, unmarked. Block
// numbers begin with 0.
type clock struct {
	capacity, used float64
	most           float64 // bytes that one miss moves before marks no longer count
	sizes          []float64
	state          []blockState
	queue          []int32 // circular: blocks that are there, the oldest first
	first, count   int
}

// A blockState says whether a block is there.
type blockState uint8

const (
	gone blockState = iota
	there
	marked
)

// Rules of package cache.
const (
	largestPart = 4       // a block takes a fourth of the cache at the most
	mostMoved   = 1 << 20 // bytes
)

// newClock returns an empty cache for blocks of these sizes. Share is the part of all blocks
// that they are: of a sample of the blocks, a cache smaller by as much has the same part.
func newClock(capacity int64, sizes []float64, share float64) *clock {
	return &clock{
		capacity: float64(capacity) * share, most: mostMoved * share, sizes: sizes,
		state: make([]blockState, len(sizes)), queue: make([]int32, len(sizes)+1),
	}
}

// read reports whether the cache has a block, and then has it.
func (c *clock) read(block int32) (hit bool) {
	if c.state[block] != gone {
		c.state[block] = marked
		return true
	}
	size := c.sizes[block]
	if size*largestPart > c.capacity {
		return false
	}
	moved := 0.0
	for c.used+size > c.capacity {
		old := c.pop()
		if c.state[old] == marked && moved < c.most {
			c.state[old] = there
			moved += c.sizes[old]
			c.push(old)
			continue
		}
		c.state[old] = gone
		c.used -= c.sizes[old]
	}
	c.state[block] = there
	c.used += size
	c.push(block)
	return false
}

func (c *clock) push(block int32) {
	c.queue[(c.first+c.count)%len(c.queue)] = block
	c.count++
}

func (c *clock) pop() int32 {
	block := c.queue[c.first]
	c.first = (c.first + 1) % len(c.queue)
	c.count--
	return block
}
