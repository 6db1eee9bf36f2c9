package kv

import (
	"errors"

	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/wal"
)

// A memTable holds the newest writes.
type memTable = memtable.Memtable

// newMemTable returns a memtable with arena bytes for points, whose writes are in a WAL. Its
// memory is in the heap: for one of unknown use.
func newMemTable(arena int64, log uint64) *memTable {
	m := memtable.New(int(arena))
	m.Log = log
	return m
}

// nextMemTable returns a memtable of MemtableSize, or what the MemoryBudget allows, whose writes are in a WAL. It has
// room for the given number of bytes of points at least. Its memory is used again when no state has the memtable any
// more.
func (d *DB) nextMemTable(least int64, log uint64) *memTable {
	arena := d.opts.memtableArena()
	if d.memory.share != nil {
		size, taken := d.memory.share.Promise()
		defer taken()
		arena = int64(memtable.CapacityWithin(int(size)))
		d.memory.memtables.SetKeep(int(arena))
	}
	m := d.memory.memtables.New(int(max(arena, least)))
	m.Log = log
	return m
}

// memtableArena is the arena of a memtable that takes MemtableSize with its index.
func (o *Options) memtableArena() int64 {
	return int64(memtable.CapacityWithin(int(o.MemtableSize)))
}

// rotateIf rotates if the store takes writes, another memtable may exist, and the active one is wanted to go. The
// caller leads the pipeline.
func (d *DB) rotateIf(wanted func(m *memTable) bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failure != nil || d.closing || d.mem == nil || len(d.imms)+1 >= d.opts.MaxMemtables || !wanted(d.mem) {
		return nil
	}
	return d.rotateTo(0, nil)
}

// rotateTo makes the active memtable immutable, with its log, and starts new ones. The memtable has room for arena
// bytes, or for the record of an order, unless that is nil. The caller leads the pipeline and holds d.mu, which is
// released during I/O.
func (d *DB) rotateTo(arena int, own *memtable.Order) error {
	least := int64(arena) + memtable.Slack
	newTable := func(log uint64) *memTable {
		if own == nil {
			return d.nextMemTable(least, log)
		}
		m := d.memory.memtables.NewForRecord(own)
		m.Log = log
		return m
	}
	if d.mem.Empty() {
		d.mem = newTable(d.mem.Log) // it was too small for the batch, or too large for the budget
		d.installState()
		return nil
	}
	d.mu.Unlock()
	prepared := d.logs.Take()
	log, err := d.rotateLog(prepared.Log)
	next := prepared.Mem
	if next != nil && (err != nil || own != nil || least > next.Capacity() || d.memory.share.TooLarge(next.Bytes())) {
		next.Drop()
		next = nil
	}
	if err == nil && next == nil {
		next = newTable(log.ID()) // out of the lock: clearing its memory takes milliseconds
	}
	d.mu.Lock()
	if err != nil {
		return err
	}
	d.mem.LastSeq.Store(uint64(d.commits.LastSeq()))
	d.imms = append(d.imms, d.mem)
	d.mem = next
	d.early.Renew()
	d.installState()
	d.scheduleFlush()
	return nil
}

// rotateLog ends the log and goes on in the next one, or in a new one if next is nil. The caller leads the pipeline.
func (d *DB) rotateLog(next *wal.Writer) (*wal.Writer, error) {
	const what = "starting a new log"
	if next == nil {
		var err error
		if next, err = d.logs.Create(d.newFileNum()); err != nil && d.lacksSpace(err) {
			next, err = d.logs.Create(d.newFileNum())
		}
		if err != nil {
			// The log that is there is whole, and is not broken: if the store closes before it
			// has resumed, it can be synced.
			return nil, d.fail(brokenLog, what, err)
		}
	}
	ended := d.commits.Log()
	if err := errors.Join(d.values.Commits().EndLog(), ended.End()); err != nil {
		d.logs.Discard(next)
		return nil, d.commits.Fail(what, err)
	}
	next.TakeBuffer(ended)
	d.counters.WALBytes.Add(uint64(ended.Size()))
	d.commits.SwitchLog(next)
	return next, nil
}
