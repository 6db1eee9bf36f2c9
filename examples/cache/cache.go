package main

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/siftkv/siftkv/kv"
)

const slotName = "cache"

// A cache has pages by the keys of their texts. It is a kv.Writer: what is written to it, it drops.
type cache struct {
	db     *kv.DB
	render func(text []byte) string

	mu    sync.Mutex
	moved sync.Cond // at has moved, or err is set
	pages map[string]*page
	at    uint64 // all changes up to this number were dropped
	err   error  // why follow has ended
}

// A page may be in the making still.
type page struct {
	once sync.Once
	html string
	err  error
}

func newCache(db *kv.DB, render func(text []byte) string) *cache {
	c := &cache{db: db, render: render, pages: map[string]*page{}}
	c.moved.L = &c.mu
	return c
}

// page returns the page of a key. The page is in the map before its text is read: a change that comes after the text
// was read finds it there, and drops it.
func (c *cache) page(key string) (string, error) {
	c.mu.Lock()
	p := c.pages[key]
	if p == nil {
		p = &page{}
		c.pages[key] = p
	}
	c.mu.Unlock()
	p.once.Do(func() {
		text, err := c.db.Get([]byte(key))
		if p.err = err; err == nil {
			p.html = c.render(text)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.pages[key] == p { // the next request tries again
			delete(c.pages, key)
		}
	})
	return p.html, p.err
}

// follow drops what changes, until ctx ends. The cache of a new process is empty: it needs no change from before. That
// makes a new slot the right one, and so it is where a slot was lost.
func (c *cache) follow(ctx context.Context) (err error) {
	defer func() {
		c.mu.Lock()
		c.err = err
		c.moved.Broadcast()
		c.mu.Unlock()
	}()
	for {
		if err := c.drop(ctx); !errors.Is(err, kv.ErrSlotLost) {
			return err
		}
	}
}

func (c *cache) drop(ctx context.Context) error {
	if err := c.db.DropSlot(slotName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	slot, snapshot, err := c.db.CreateSlot(ctx, slotName)
	if err != nil {
		return err
	}
	defer slot.Close()
	if err := snapshot.Close(); err != nil {
		return err
	}
	c.mu.Lock()
	clear(c.pages)
	c.moveTo(slot.Position())
	c.mu.Unlock()
	n := 0
	for change, err := range slot.Changes(ctx) {
		if err != nil {
			return err
		}
		c.mu.Lock()
		if err = change.Replay(c); err == nil {
			c.moveTo(change.Last())
		}
		c.mu.Unlock()
		if n++; err == nil && n%100 == 0 { // an acknowledgement is a file, and frees the history before it
			err = slot.Ack(change.Last())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *cache) moveTo(at uint64) {
	c.at = at
	c.moved.Broadcast()
}

// wait returns when the cache has dropped all that the changes up to number at have changed.
func (c *cache) wait(at uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.at < at && c.err == nil {
		c.moved.Wait()
	}
	return c.err
}

func (c *cache) Set(key, _ []byte) error                   { return c.Delete(key) }
func (c *cache) SetUntil(key, _ []byte, _ time.Time) error { return c.Delete(key) }
func (c *cache) Merge(key, _ []byte) error                 { return c.Delete(key) }

func (c *cache) Delete(key []byte) error {
	delete(c.pages, string(key))
	return nil
}

func (c *cache) DeleteRange(lo, hi []byte) error {
	for key := range c.pages {
		if key >= string(lo) && (hi == nil || key < string(hi)) {
			delete(c.pages, key)
		}
	}
	return nil
}

// lastChange returns the number of the last change of a store that has slots.
func lastChange(db *kv.DB) (last uint64) {
	for _, s := range db.Slots() {
		last = max(last, s.Acked+s.Behind)
	}
	return last
}
