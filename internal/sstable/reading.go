package sstable

import (
	"errors"
	"sync"
	"sync/atomic"
)

// A readingList has the blocks that are being read. Others who want one of them wait, and
// are handed what came of it: however many come to a cold block, it is read once, also if the
// cache does not keep it or has evicted it when they wake up. An error is everybody's who
// waited; who comes later tries again. The list is as long as there are goroutines that read,
// and nobody looks at it for a cached block.
type readingList struct {
	mu     sync.Mutex
	blocks []blockRead
}

// A blockRead is a block on the list.
type blockRead struct {
	block int
	out   *sharedRead // nil: nobody waits
}

// A sharedRead is what came of reading a block for several goroutines. Each of them has one
// of refs; the last one gives the block back.
type sharedRead struct {
	done chan struct{}
	refs atomic.Int64
	held held
	err  error
}

// begin enters a block and returns nil: the caller reads it and then calls end, with guard deferred. If somebody
// reads it, begin waits for that and returns what came of it.
func (l *readingList) begin(block int) *sharedRead {
	l.mu.Lock()
	for i := range l.blocks {
		if b := &l.blocks[i]; b.block == block {
			if b.out == nil {
				b.out = &sharedRead{done: make(chan struct{})}
				b.out.refs.Store(1) // of who reads
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

// end takes a block off the list, of which h or err came, and returns them as the caller
// has them from then on: perhaps together with others.
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

// guard is deferred by who calls end and then sets ended: if a panic ends the reading, others do not wait
// for ever.
func (l *readingList) guard(block int, ended *bool) {
	if !*ended {
		_, _ = l.end(block, held{}, errAbandoned)
	}
}

// take returns what was read to one of those who share it.
func (s *sharedRead) take() (held, error) {
	if s.err != nil {
		return held{}, s.err
	}
	return held{data: s.held.data, shared: s}, nil
}

// release gives back what take returned.
func (s *sharedRead) release() {
	if s.refs.Add(-1) == 0 {
		s.held.release()
	}
}
