package multiget

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/callback"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/values"
)

// Blocks that are not in the cache are read in one of three ways, and how the first read went says in which.
//
// The system has them in memory, and a read takes one to three microseconds. The caller reads one after the other, and
// other processors take part only if there are hundreds.
//
// A device has them, and the system begins to read without a wait: it is asked for the next ones before the
// caller waits for the first. That is as fast as a goroutine for each, at a fraction of the processor time.
//
// A device has them, and all that the system offers is to wait. Goroutines wait side by side, whatever the number of
// processors, as a read that waits takes none.

// minShare is how many blocks out of the system's memory another goroutine has to have for its share. This was
// measured on a virtual machine of two processors, which were idle. To wake an idle goroutine took the caller 8 µs,
// and it began 30 µs later. The way back took as long: with it 32 blocks, 80 µs of work, took 80 µs.
const minShare = 128

// MaxPrefetch bounds the blocks that the system is asked for before they are read: a device's queue, or half of it.
const MaxPrefetch = 128

// A leafPrefetch asks the system for parts of indexes before the first of them is waited for, as a blockReader
// does for blocks.
type leafPrefetch struct {
	probes []*probe         // that are still to be located
	asked  int              // of probes, those whose leaves the system was asked for
	known  map[leafOf]bool  // the leaves that it was asked for
	wait   func(begun bool) // beforeWait
}

// A leafOf is a part of the index of a file.
type leafOf struct {
	reader *sstable.Reader
	leaf   int
}

func (a *leafPrefetch) begin(probes []*probe) {
	if a.probes = probes; a.wait == nil {
		a.known, a.wait = map[leafOf]bool{}, a.beforeWait
	}
}

// next goes on to the next probe, and returns what is called before its leaf is waited for.
func (a *leafPrefetch) next() func(begun bool) {
	if len(a.probes) == 0 {
		return nil
	}
	a.probes, a.asked = a.probes[1:], max(a.asked-1, 0)
	return a.wait
}

// beforeWait is called before an index leaf is waited for.
func (a *leafPrefetch) beforeWait(begun bool) {
	if !begun {
		return
	}
	for ; a.asked < min(len(a.probes), MaxPrefetch); a.asked++ {
		p := a.probes[a.asked]
		leaf, cold := p.reader.ColdLeaf(p.key.Key)
		if of := (leafOf{p.reader, leaf}); cold && !a.known[of] {
			a.known[of] = true
			p.reader.PrefetchLeaf(leaf)
		}
	}
}

// end makes a ready for other probes.
func (a *leafPrefetch) end() {
	if a.probes, a.asked = nil, 0; len(a.known) > 0 {
		clear(a.known)
	}
}

// A blockReader is a goroutine that reads blocks.
type blockReader struct {
	own    []block // blocks that it reads and no other does
	asked  int     // of own, those that the system was asked for
	shared *sharedBlocks
	buffer []byte // of values, until they are copied

	wait  func(begun bool) // beforeWait
	ahead bool             // the system was asked for the block before it is read
	begun bool             // it has begun to read it
	since time.Time        // when the wait for it began; 0: there was none
	first time.Duration    // how long the last block took that was not asked for ahead
}

func newBlockReader() *blockReader {
	r := new(blockReader)
	r.wait = r.beforeWait
	return r
}

// beforeWait is called before the block that r reads is waited for. If the system can be asked for more,
// what others have not claimed is r's: they would only wait for the same device.
func (r *blockReader) beforeWait(begun bool) {
	r.since, r.begun = time.Now(), begun
	if !begun || r.shared != nil && r.shared.waits {
		return
	}
	if r.shared != nil {
		r.own, r.asked, r.shared = r.shared.claimAll(), 0, nil
	}
	for ; r.asked < min(len(r.own), MaxPrefetch); r.asked++ {
		r.own[r.asked].reader.Prefetch(r.own[r.asked].lookups[0])
	}
}

// next returns the next block that is r's to read; nil if there is none.
func (r *blockReader) next() *block {
	if len(r.own) > 0 {
		b := &r.own[0]
		r.ahead = r.asked > 0
		r.own, r.asked = r.own[1:], max(r.asked-1, 0)
		return b
	}
	r.ahead = false
	if r.shared != nil {
		return r.shared.claim()
	}
	return nil
}

// read reads a block. It reports true if that was slow: it had to be waited for, and asking the system for others does
// not help. It is no help if a block takes about as long as one that was not asked for ahead. Kernels before 5.12 do
// not begin to read what they do not have.
func (r *blockReader) read(b *block) (slow bool) {
	first := b.lookups[0]
	first.Probe.Wait = r.wait
	r.buffer = b.reader.FindInBlock(r.buffer, b.lookups)
	first.Probe.Wait = nil // older operands are none of r's reads
	if r.since.IsZero() {
		return false
	}
	took := time.Since(r.since)
	r.since = time.Time{}
	if r.begun && !r.ahead {
		r.first = took
		return false
	}
	return took >= values.DeviceWait && (!r.begun || took >= r.first*3/4)
}

// A sharedBlocks is blocks that several goroutines read. One that begins late finds none left, and touches nothing
// else: none waits for it.
type sharedBlocks struct {
	blocks  []block
	waits   bool         // reads wait for a device, and asking the system ahead is no help
	claimed atomic.Int64 // of blocks; may be more
	left    atomic.Int64 // of blocks, those that another goroutine may wait for
	done    chan struct{}
	failed  atomic.Pointer[error] // what a filter did to a goroutine
}

// claim returns a block that is the caller's to read; nil if all have been claimed.
func (s *sharedBlocks) claim() *block {
	if i := s.claimed.Add(1) - 1; i < int64(len(s.blocks)) {
		return &s.blocks[i]
	}
	return nil
}

// claimAll returns all blocks that were not claimed.
func (s *sharedBlocks) claimAll() []block {
	n := int64(len(s.blocks))
	return s.blocks[min(s.claimed.Swap(n), n):]
}

// finish says that n blocks need no wait any more, and reports whether they were the last.
func (s *sharedBlocks) finish(n int) bool { return s.left.Add(-int64(n)) == 0 }

// help reads shared blocks with r, which is its own from the first block that it has claimed until the last
// block is read. A filter of the application that ends it leaves what it has not read unread.
func (s *sharedBlocks) help(r *blockReader) {
	b := s.claim()
	if b == nil {
		return
	}
	r.own, r.asked, r.shared = nil, 0, s
	n := 0
	err := callback.Do("Filter or Prefix", func() error {
		for ; b != nil; b = r.next() {
			n++
			r.read(b)
		}
		return nil
	})
	if err != nil {
		s.failed.CompareAndSwap(nil, &err)
	}
	r.shared = nil
	if s.finish(n + len(r.own)) {
		s.done <- struct{}{}
	}
}

// read reads the blocks of the round.
func (s *Search) read() {
	if len(s.unread) == 0 {
		return
	}
	s.group(func(p *probe) (int, bool) { return p.lookup.Block(), true })
	r := s.reader(0)
	r.own, r.asked = s.blocks, 0
	for b := r.next(); b != nil; b = r.next() {
		slow, left := r.read(b), len(r.own)
		if slow && left > 1 {
			s.readShared(r, min(left, values.MaxReads), true)
		} else if n := min(left/minShare, runtime.GOMAXPROCS(0)); n > 1 && r.asked == 0 {
			s.readShared(r, n, false)
		}
	}
}

// reader returns one of s's readers.
func (s *Search) reader(i int) *blockReader {
	for len(s.readers) <= i {
		s.readers = append(s.readers, newBlockReader())
	}
	return s.readers[i]
}

// readShared reads what is r's together with others, n in all. If reads become slow, it leaves to r the blocks that no
// goroutine has begun. If a filter of the application panics in another goroutine, or ends it, so it does to the
// caller's.
func (s *Search) readShared(r *blockReader, n int, waits bool) {
	shared := &sharedBlocks{blocks: r.own, waits: waits, done: make(chan struct{}, 1)}
	shared.left.Store(int64(len(r.own)))
	for i := 1; i < n; i++ {
		go shared.help(s.reader(i))
	}
	r.own, r.asked, r.shared = nil, 0, shared
	shared.lead(r)
	if err := shared.failed.Load(); err != nil {
		callback.Resume(*err)
	}
}

// lead reads shared blocks with r, and returns when no other goroutine reads any, also if a filter ends its goroutine.
func (s *sharedBlocks) lead(r *blockReader) {
	mine := 0
	defer func() {
		r.shared = nil
		if !s.finish(mine + len(r.own) + len(s.claimAll())) {
			<-s.done
		}
	}()
	for b := r.next(); b != nil; b = r.next() {
		mine++
		if r.read(b) && !s.waits && r.shared != nil {
			r.own = s.claimAll()
			break
		}
	}
}
