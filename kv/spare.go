package kv

import (
	"github.com/siftkv/siftkv/internal/wal"
)

// A rotation needs a log whose name is durable, and a memtable whose memory is cleared:
// milliseconds in which no writer goes on. So a goroutine prepares them when the active
// memtable is nearly full, and a writer that finds it full only takes them.
//
// The next log is the one that was prepared, or is being prepared: a follower goes on in
// the log with the next number, whatever comes of it.

// A spare is what the next rotation takes.
type spare struct {
	log *wal.Writer
	mem *memTable // nil if MaxMemtables was reached
}

// spareShare: the spare is made when all except 1/spareShare of the active memtable's room
// is in use.
const spareShare = 8

// prepareSpare starts to make the spare, once for each memtable. The caller leads the pipeline.
func (d *DB) prepareSpare() {
	d.spareAsked.Store(true)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.preparing || d.spare.log != nil || d.closing || d.failure != nil {
		return
	}
	d.preparing = true
	go d.makeSpare(len(d.imms)+2 <= d.opts.MaxMemtables)
}

// makeSpare makes the spare. If it cannot, the rotation makes its own, or fails as well.
func (d *DB) makeSpare(memtable bool) {
	var s spare
	log, err := d.createLog(d.newFileNum())
	if err != nil {
		d.log.Debug("no log was made ahead", "error", err)
	} else if s.log = log; memtable {
		s.mem = d.nextMemTable(0, log.ID())
	}
	d.mu.Lock()
	d.spare, d.preparing = s, false
	d.mu.Unlock()
	d.progress.Broadcast()
}

// takeSpare returns what was prepared, if anything was. The caller holds d.mu, which is
// released meanwhile.
func (d *DB) takeSpare() spare {
	for d.preparing {
		d.progress.Wait()
	}
	s := d.spare
	d.spare = spare{}
	d.spareAsked.Store(false)
	return s
}

// dropSpare drops what was prepared.
func (d *DB) dropSpare() {
	d.mu.Lock()
	s := d.takeSpare()
	d.mu.Unlock()
	s.mem.Drop()
	if s.log != nil {
		d.discardLog(s.log)
	}
}
