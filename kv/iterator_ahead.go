package kv

import (
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/values"
)

// An iterator that goes on through blob values prefetches. It moves over some entries before its user does, keeps
// their keys and handles, and reads all the values at once. Then it gives out one entry with each move. A turn or a
// seek drops what is left. Most scans go on to what was prefetched. If not, that is no more entries than were given
// out before, or leastOn.

// An aheadness says where the input of a cursor is.
type aheadness uint8

const (
	onEntry   aheadness = iota
	pastEntry           // going forward, at the first entry that is no operand or version of the key
	readAhead           // at the last of the entries that were prefetched, or past it
)

const (
	readOnFrom = 2  // entries that a scan visits before it prefetches
	leastOn    = 8  // entries that it prefetches at least, unless fewer are left
	mostOn     = 64 // and at most
	// nowOn bounds the bytes that it prefetches from memory: they are still in a processor's cache when they are used.
	nowOn = 256 << 10
	// waitOn bounds the bytes that it prefetches if reads take long.
	waitOn = 1 << 20
	// longOn: a value or record of at least this length is read alone, when the iterator reaches it. To read others
	// with it gains nothing.
	longOn = 256 << 10
)

// takesOn returns how many bytes a value, which may be compressed, takes when it is prefetched.
func takesOn(h blob.Handle) int64 { return max(h.Length, h.Size) }

// A readOn has the entries that an iterator has prefetched.
type readOn struct {
	entries []entryRead
	at      int    // of entries, the next to be given out
	memory  []byte // keys, and values that are in tables
	blobs   values.ReadBatch

	filling bool // the cursor moves for the sake of entries
	off     bool // it moves otherwise, for newestFirst
	waited  bool // the last reads took long
	budget  *sstable.Budget
	counted int // bytes that the budget has counted

	// What the cursor was when it stopped:
	ended bool // on no entry
	err   error
	ahead aheadness
	table *sstable.Iter
}

// An entryRead is an entry of a readOn. The key, and the value if it is in a table, are parts of memory.
type entryRead struct {
	key    [2]int
	value  [2]int
	expiry uint64
	under  uint64 // when the value changes, as what is under operands expires; 0: never
	read   int    // of the value, in blobs; -1: it is in memory
	err    error  // why there is no value
}

// readsOn reports whether the iterator prefetches, beginning with an entry that has the handle. The iterator of a
// transaction does not: it sees what the transaction writes meanwhile.
func (i *cursor) readsOn(h blob.Handle) bool {
	return i.returned-i.turned >= readOnFrom && i.own == nil && takesOn(h) < longOn && !i.parts.on.off
}

// readFrom prefetches, beginning with the entry that the iterator is on, whose handle is given. It shows that entry.
func (i *cursor) readFrom(h blob.Handle) error {
	on := &i.parts.on
	on.reset()
	most := int64(nowOn)
	if on.waited || i.db.tables.Far {
		most = waitOn
	}
	if i.db.tables.Far && !on.reserve(&i.db.tables.Parts, int(most)) {
		var err error
		i.value, err = i.fetch(i.key, h)
		i.valid = err == nil
		return err
	}
	entries := min(max(i.returned-i.turned, leastOn), mostOn)
	i.apart = h
	bytes := on.add(i)
	returned := i.returned
	on.filling = true
	for uint64(len(on.entries)) < entries && bytes < most {
		if i.apart = (blob.Handle{}); !i.step() && !i.passable() {
			on.ended, on.err = true, i.err
			break
		}
		bytes += on.add(i)
	}
	on.filling, i.returned = false, returned
	on.ahead, on.table = i.ahead, i.table
	i.apart, i.table, i.ahead, i.err = blob.Handle{}, nil, readAhead, nil
	on.setKeys()
	on.waited = on.blobs.Read(i.db.values, i.state.version, i.db.tables.Far)
	on.blobs.Count(&i.db.counters.Stripes[i.stripe].Blobs)
	on.at = 1
	return i.give(&on.entries[0])
}

// step moves in the iterator's direction, past what was read.
func (i *cursor) step() bool {
	t := i.table
	i.valid, i.err, i.expiry, i.under = t != nil, nil, 0, 0
	switch {
	case t != nil:
		return i.nextInTable(t)
	case i.backward:
		return i.back(i.input.Valid())
	case i.ahead == pastEntry:
		return i.forward(i.input.Valid(), true)
	}
	return i.forward(i.input.Next(), true)
}

// add adds the entry that the cursor is on, and returns how many bytes its key and value take, without a value that is
// read alone.
func (on *readOn) add(i *cursor) int64 {
	key, value := i.key, i.value
	if i.table != nil {
		key, value = i.table.User(), i.table.Value()
	}
	e := entryRead{expiry: i.expiry, read: -1}
	e.key[0] = len(on.memory)
	on.memory = append(on.memory, key...)
	e.key[1] = len(on.memory)
	n := int64(len(key))
	if e.err = i.err; e.err != nil {
		value = nil
	}
	if h := i.apart; h.File > 0 {
		e.read = len(on.blobs.Reads)
		takes := takesOn(h)
		alone := takes >= longOn
		if on.blobs.Reads = append(on.blobs.Reads, values.Read{Handle: h, Alone: alone}); !alone {
			n += takes
		}
	} else {
		e.under = i.under
		on.memory = append(on.memory, value...)
		n += int64(len(value))
	}
	e.value = [2]int{e.key[1], len(on.memory)}
	on.entries = append(on.entries, e)
	return n
}

// setKeys sets the keys of the values to read: memory does not move any more.
func (on *readOn) setKeys() {
	for n := range on.entries {
		if e := &on.entries[n]; e.read >= 0 {
			on.blobs.Reads[e.read].Key = on.memory[e.key[0]:e.key[1]]
		}
	}
}

// nextRead moves to the next entry that was prefetched, or past all of them.
func (i *cursor) nextRead() bool {
	on := &i.parts.on
	for on.at < len(on.entries) {
		e := &on.entries[on.at]
		on.at++
		if e.expiry > 0 && i.db.now() >= e.expiry {
			continue
		}
		i.err = i.give(e)
		if i.valid && e.under > 0 && i.db.now() >= e.under {
			var err error
			i.valid, err = i.lookAgain()
			i.err = i.cannotShow(err)
		}
		return i.came(i.valid)
	}
	i.setKey(&on.entries[len(on.entries)-1])
	if on.ended {
		i.err = on.err
		return false
	}
	i.ahead, i.table = on.ahead, on.table
	if i.table != nil {
		return i.step() // which counts
	}
	return i.came(i.step())
}

func (i *cursor) setKey(e *entryRead) {
	i.key = append(i.key[:0], i.parts.on.memory[e.key[0]:e.key[1]]...)
}

// give makes an entry the one that the iterator is on.
func (i *cursor) give(e *entryRead) (err error) {
	on := &i.parts.on
	i.setKey(e)
	i.value, i.expiry, err = on.memory[e.value[0]:e.value[1]], e.expiry, e.err
	if e.read >= 0 {
		r := &on.blobs.Reads[e.read]
		if i.value = r.Value; !r.Done {
			i.value, err = i.fetch(i.key, r.Handle)
		}
	}
	i.valid = err == nil
	return i.cannotShow(err)
}

// lookAgain makes the value of i.key, which has operands, again.
func (i *cursor) lookAgain() (ok bool, err error) {
	l := lookup{d: i.db, key: i.key, hash: filterpolicy.Hash(i.key), at: i.at, want: true, dst: i.older[:0]}
	ok, err = l.run(i.state)
	l.copyValue(0)
	i.older, i.value = l.dst, l.dst
	return ok && err == nil, err
}

// reset makes on ready for other entries.
func (on *readOn) reset() {
	on.entries, on.memory = on.entries[:0], on.memory[:0]
	on.at, on.ended, on.err, on.table = 0, false, nil, nil
	on.blobs.Reset()
}

// reserve has a budget count n bytes until release, and reports whether it has room for them.
func (on *readOn) reserve(b *sstable.Budget, n int) bool {
	if on.counted > 0 {
		return true
	}
	if !b.Take(n) {
		return false
	}
	on.budget, on.counted = b, n
	return true
}

// release makes on ready for another iterator.
func (on *readOn) release() {
	if cap(on.entries) == 0 {
		return
	}
	if on.counted > 0 {
		on.budget.Give(on.counted)
	}
	on.reset()
	on.blobs.Release()
	*on = readOn{entries: on.entries, memory: on.memory, blobs: on.blobs}
	if cap(on.memory) > maxRetainedScratch {
		on.memory = nil
	}
}
