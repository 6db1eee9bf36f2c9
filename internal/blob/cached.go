package blob

import (
	"bytes"
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/cache"
)

// Short values that are asked for again are kept in the cache of blocks. Out of the system's memory a value takes a
// system call, a copy and a checksum, out of the cache a copy: half the time. To put it there takes another copy and
// pushes something else out, so a value goes there when it is read for the second time, unless to read it is a request
// to another machine. Passes over many values use AppendValue or spans, which leave the cache as it is.
//
// In the cache a value follows what proves that it is the handle's:
//
//	offset  u64  of the record
//	key     u32  its length
//	key
//	value        decompressed

const (
	// maxCached is the length of the longest value that is kept, in bytes.
	maxCached = 64 << 10

	cachedHead = 12
	pageSlots  = 64
)

// A Cache is where readers keep values. The zero value keeps none.
type Cache struct {
	Blocks *cache.Cache
	Owner  *cache.Owner // counts the values; nil: they are not counted
	AtOnce bool         // a value is kept after its first read, since a read is a request
}

// A cachePage has the slots of pageSlots records that follow each other.
type cachePage struct {
	read  atomic.Uint64 // a bit for each record that was read once since it was in the cache
	slots [pageSlots]cache.Slot
}

// A valueCache has a file's slots, by the ordinals of its records. Pages are made when a record of theirs is read: nine
// bytes for a record in them, and an eighth of one for each other.
type valueCache struct {
	Cache
	records uint64
	id      uint64

	pages atomic.Pointer[[]atomic.Pointer[cachePage]]
	mu    sync.Mutex
	own   *cache.Cache // a reference to Blocks, once there is a page
}

// slot returns the place of a value in the cache; nil if it has none.
func (c *valueCache) slot(h Handle) (*cachePage, *cache.Slot) {
	if c.Blocks == nil || h.Size > maxCached || h.Ordinal >= c.records {
		return nil, nil
	}
	pages := c.pages.Load()
	if pages == nil {
		if pages = c.begin(); pages == nil {
			return nil, nil
		}
	}
	at := &(*pages)[h.Ordinal/pageSlots]
	page := at.Load()
	if page == nil {
		at.CompareAndSwap(nil, new(cachePage))
		page = at.Load()
	}
	return page, &page.slots[h.Ordinal%pageSlots]
}

// begin makes the list of pages, and takes the reference. It returns nil if the cache is gone.
func (c *valueCache) begin() *[]atomic.Pointer[cachePage] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pages.Load() == nil {
		if c.own = c.Blocks.Retain(); c.own == nil {
			return nil
		}
		pages := make([]atomic.Pointer[cachePage], (c.records+pageSlots-1)/pageSlots)
		c.pages.Store(&pages)
	}
	return c.pages.Load()
}

// appendCached appends to dst the value of key that a handle leads to, if it is in its slot.
func (c *valueCache) appendCached(dst, key []byte, h Handle, slot *cache.Slot) ([]byte, bool) {
	b, ok := c.Blocks.Pin(slot)
	if !ok {
		return dst, false
	}
	defer slot.Unpin()
	n := cachedHead + len(key)
	if len(b) != n+int(h.Size) || binary.LittleEndian.Uint64(b) != uint64(h.Offset) ||
		int(binary.LittleEndian.Uint32(b[8:])) != len(key) || !bytes.Equal(b[cachedHead:n], key) {
		return dst, false // a wrong handle: the file says what is wrong
	}
	return append(dst, b[n:]...), true
}

// keep puts a value into its slot, if it was read before or AtOnce is set.
func (c *valueCache) keep(page *cachePage, slot *cache.Slot, key []byte, h Handle, value []byte) {
	if bit := uint64(1) << (h.Ordinal % pageSlots); !c.AtOnce {
		if page.read.Or(bit)&bit == 0 {
			return
		}
		page.read.And(^bit) // when it has been pushed out, it has to be read twice again
	}
	b := c.Blocks.Reserve(c.key(h.Ordinal), slot, cachedHead+len(key)+len(value), c.Owner)
	if b == nil {
		return
	}
	binary.LittleEndian.PutUint64(b, uint64(h.Offset))
	binary.LittleEndian.PutUint32(b[8:], uint32(len(key)))
	copy(b[cachedHead:], key)
	copy(b[cachedHead+len(key):], value)
	slot.Publish()
	slot.Unpin()
}

// key names a value among all blocks of the cache.
func (c *valueCache) key(ordinal uint64) uint64 { return c.id + ordinal }

// close takes all values out of the cache. None may be read meanwhile.
func (c *valueCache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	pages := c.pages.Swap(nil)
	if pages == nil {
		return
	}
	for i := range *pages {
		page := (*pages)[i].Load()
		for s := 0; page != nil && s < pageSlots; s++ {
			c.own.Drop(c.key(uint64(i*pageSlots+s)), &page.slots[s], c.Owner)
		}
	}
	c.own.Release()
	c.own = nil
}

// AppendIfCached appends to dst the value of key that a handle leads to, if it is in the cache, and reports whether it
// is.
func (r *Reader) AppendIfCached(dst, key []byte, h Handle) ([]byte, bool) {
	if _, slot := r.cache.slot(h); slot != nil {
		return r.cache.appendCached(dst, key, h, slot)
	}
	return dst, false
}

// AppendCached is AppendValue for a value that may be asked for again: it is looked for in the cache, and kept there.
// Hit reports whether it was there.
func (r *Reader) AppendCached(dst, key []byte, h Handle) (out []byte, hit bool, err error) {
	page, slot := r.cache.slot(h)
	if slot == nil {
		out, err = r.AppendValue(dst, key, h)
		return out, false, err
	}
	if out, hit = r.cache.appendCached(dst, key, h, slot); hit {
		return out, true, nil
	}
	if out, err = r.AppendValue(dst, key, h); err == nil {
		r.cache.keep(page, slot, key, h, out[len(dst):])
	}
	return out, false, err
}
