package sstable

import (
	"errors"
	"sync"
	"sync/atomic"
)

// A readingList has the blocks that are being read. Other goroutines that want one of them wait,
// and get the result. So a cold block is read once, even if the cache does not keep it or has
// evicted it when they wake up. An error goes to all that waited; later callers try again. The list
// has one block per reading goroutine, and is not used for cached blocks.
type readingList struct {
	mu     sync.Mutex
	blocks []blockRead
}

// A blockRead is a block on the list.
type blockRead struct {
	block int
	out   *sharedRead // nil: no goroutine waits
}

// A sharedRead is a block that was read for several goroutines, or the error. Each of them has one
// of refs; the last one releases the block.
type sharedRead struct {
	done chan struct{}
	refs atomic.Int64
	held held
	err  error
}

// shared returns block n from the cache, or else what read returns, which reads it. If another goroutine reads the
// block, it waits for that and has what the other has. Cached says that read was not called.
func (r *Reader) shared(n int, read func() (held, error)) (h held, cached bool, err error) {
	if other := r.reading.begin(n); other != nil {
		h, err = other.take()
		return h, true, err
	}
	ended := false
	defer r.reading.guard(n, &ended)
	if data, ok := r.cache.Pin(&r.slots[n]); ok { // it has come since we looked
		h, cached = held{data: data, slot: &r.slots[n]}, true
	} else {
		h, err = read()
	}
	ended = true
	h, err = r.reading.end(n, h, err)
	return h, cached, err
}

// begin enters a block and returns nil: the caller reads it and then calls end, with guard deferred. If another
// goroutine reads it, begin waits for that and returns the result.
func (l *readingList) begin(block int) *sharedRead {
	l.mu.Lock()
	for i := range l.blocks {
		if b := &l.blocks[i]; b.block == block {
			if b.out == nil {
				b.out = &sharedRead{done: make(chan struct{})}
				b.out.refs.Store(1) // of the reading goroutine
			}
			out := b.out
			out.refs.Add(1)
			l.mu.Unlock()
			<-out.done
			return out
		}
	}
	l.blocks = append(l.blocks, blockRead{block: block})
	l.mu.Unlock()
	return nil
}

// end takes a block off the list, with its result, h or err. It returns the result for
// the caller, which may share it with others.
func (l *readingList) end(block int, h held, err error) (held, error) {
	l.mu.Lock()
	i, last := 0, len(l.blocks)-1
	for l.blocks[i].block != block {
		i++
	}
	out := l.blocks[i].out
	l.blocks[i] = l.blocks[last]
	l.blocks[last] = blockRead{}
	l.blocks = l.blocks[:last]
	l.mu.Unlock()
	if out == nil {
		return h, err
	}
	out.held, out.err = h, err
	close(out.done)
	return out.take()
}

var errAbandoned = errors.New("siftkv: a block was not read: the goroutine that read it ended, perhaps by a panic")

// guard is deferred by a caller that sets ended when it calls end: if a panic ends the reading, others do not wait for
// ever.
func (l *readingList) guard(block int, ended *bool) {
	if !*ended {
		_, _ = l.end(block, held{}, errAbandoned)
	}
}

// take returns the result to one of the goroutines that share it.
func (s *sharedRead) take() (held, error) {
	if s.err != nil {
		return held{}, s.err
	}
	return held{data: s.held.data, shared: s}, nil
}

// release releases what take returned.
func (s *sharedRead) release() {
	if s.refs.Add(-1) == 0 {
		s.held.release()
	}
}
