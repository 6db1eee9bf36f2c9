// Package replay puts the writes that logs hold into memtables. It decides what to make of a log that is not whole.
package replay

import (
	"errors"
	"fmt"
	"io"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/budget"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/values"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// Logs replays logs, oldest first, as the mode says: those after write p.LastSeq. The store was closed cleanly at write
// closed, if that is not 0. The memtables are the caller's, also after an error.
func (p *Replayer) Logs(logs []uint64, closed base.SeqNum) error {
	defer p.Close()
	for i, num := range logs {
		whole, err := p.replayLog(num)
		if err != nil {
			return err
		}
		if whole || p.Mode == SkipCorrupt {
			continue
		}
		unused, err := p.neverUsed(num, logs[i+1:], closed)
		if err != nil {
			return err
		}
		if unused {
			continue
		}
		return p.dropLogs(num, logs[i+1:])
	}
	return nil
}

// Close closes the files of values that records have handles of.
func (p *Replayer) Close() { p.Values.Close() }

// A Replayer puts the writes of logs into memtables.
type Replayer struct {
	FS       vfs.FS
	Dir      string
	Hint     string           // the command that errors about damage tell the user to run
	Mode     Mode             // what to make of logs that are not whole
	Dropped  func(Dropped)    // is told what is dropped
	Arena    int64            // of the memtable that a log was written from, in bytes, if Share is nil
	OwnTable int              // size in a memtable at which a record gets one of its own
	Share    *budget.Share    // counts the memtables; nil: there is none
	Combine  memtable.Combine // nil: operands stay as they are
	Values   values.Replay
	Log      uint64 // what memtables are marked with, and not shared by: 0, or a log's number

	Mems    []*memtable.Memtable // oldest first
	Used    manifest.Features    // by the writes
	LastSeq base.SeqNum          // of the last write
	Gap     bool                 // a write is not the one that follows the last
}

// replayLog replays one WAL. It reports whether the log was closed cleanly.
func (p *Replayer) replayLog(num uint64) (whole bool, err error) {
	err = p.readLog(num, func(r *wal.Reader, name string, size int64) error {
		var lost *Dropped // what has just been skipped
		for {
			record, err := r.Next()
			if lost != nil {
				lost.Bytes += r.Skipped()
				p.Dropped(*lost)
				lost = nil
			}
			switch {
			case errors.Is(err, io.EOF):
				whole = r.Clean()
				return nil
			case err == nil:
				err := p.Record(r, name, record)
				if p.MayEndAt(r, num, err) {
					at := r.Offset()
					p.Dropped(Dropped{File: name, Offset: at, Bytes: size - at,
						Reason: "a value is not whole, and the log does not prove that it was synced: " + err.Error()})
					return nil
				}
				if err != nil {
					return err
				}
				continue
			case p.mayEndWith(r, err):
				at := r.BrokenAt()
				p.Dropped(Dropped{File: name, Offset: at, Bytes: size - at,
					Reason: "the log breaks off, and does not tell whether what is missing was synced: " + err.Error()})
				return nil
			case p.Mode != SkipCorrupt || !wal.Broken(err):
				return p.refuse(name, r, err)
			}
			lost = &Dropped{File: name, Offset: r.BrokenAt(), Bytes: -r.Skipped(), Reason: err.Error()}
			r.Skip() // if nothing follows, Next says so
		}
	})
	return whole, err
}

// mayEndWith reports whether the mode takes what ended the log for the trace of a crash.
func (p *Replayer) mayEndWith(r *wal.Reader, err error) bool {
	switch p.Mode {
	case PointInTime:
		return r.CrashExplains(err)
	case TolerateTornTail:
		return errors.Is(err, wal.ErrTornTail)
	}
	return false
}

// MayEndAt reports whether the log may end before the record that was just read and could not be replayed. It may if
// the record's values are not whole, it is not proved to have been synced, and the mode takes that for the trace of a
// crash.
func (p *Replayer) MayEndAt(r *wal.Reader, log uint64, err error) bool {
	v, ok := errors.AsType[*values.ValueError](err)
	if !ok || !v.Torn {
		return false
	}
	if p.Mode != PointInTime && p.Mode != TolerateTornTail {
		return false
	}
	c, err := p.examineLog(log)
	if err != nil || !v.CrashExplains(r.Offset(), c.syncedTo) {
		return false
	}
	return p.Mode == PointInTime || r.Offset() == c.lastRecord
}

// refuse makes the error for a log that ends in a way that the mode does not accept.
func (p *Replayer) refuse(name string, r *wal.Reader, err error) error {
	if wal.Broken(err) && !errors.Is(err, base.ErrCorruption) { // a torn tail
		err = &base.CorruptionError{File: name, Offset: r.BrokenAt(), Cause: err,
			What: fmt.Sprintf("the log breaks off (recovery mode %v)", p.Mode)}
	}
	return base.WithHint(err, p.Hint)
}

// Record replays a record that was read whole. One of a newer format is whole too, and so may be one whose
// values could not be read: no mode passes over them.
func (p *Replayer) Record(r *wal.Reader, name string, record []byte) error {
	err := p.Apply(record, r.Take)
	v, ofValue := errors.AsType[*values.ValueError](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, base.ErrNewerFormat), ofValue && !errors.Is(v, base.ErrCorruption):
		return fmt.Errorf("%s: %w", name, err)
	case p.Mode == SkipCorrupt:
		p.Dropped(Dropped{File: name, Offset: r.Offset(), Bytes: int64(len(record)), Reason: err.Error()})
		return nil
	}
	return &base.CorruptionError{File: name, Offset: r.Offset(), What: "a record of the log", Cause: err, Hint: p.Hint}
}

// arena returns the bytes for points of the next memtable. A short log needs no large memtable, which would have to be
// cleared each time that a store is opened. So each is four times as large as the last, until those of the log are
// together as large as the one that it was written from.
func (p *Replayer) arena() int64 {
	next, full := int64(firstReplayArena), p.Arena
	if p.Share != nil {
		full = p.Share.EvenArena() // it changes as stores come and go
	}
	rest := full
	for _, m := range p.Mems {
		if m.Log == p.Log {
			next = 4 * m.Capacity()
			rest -= m.Capacity()
		}
	}
	if rest >= firstReplayArena {
		full = rest
	}
	return min(next, full)
}

// firstReplayArena is for the first memtable of a log, in bytes.
const firstReplayArena = 1 << 20

// Apply applies one batch. If the record must be kept, take makes its memory the replayer's.
func (p *Replayer) Apply(record []byte, take func([]byte) []byte) error {
	r, err := batchrepr.NewReader(record)
	if err != nil {
		return err
	}
	if r.Len() == 0 {
		return batchrepr.ErrMalformed
	}
	if r.Seq() <= p.LastSeq {
		return fmt.Errorf("sequence number %d comes again", r.Seq())
	}
	arena, used, err := memtable.Measure(record)
	if err == nil && used&manifest.FeatureSeparatedInLogs != 0 {
		if record, err = p.Values.Inline(record, r.Seq()); err == nil {
			arena, _, err = memtable.Measure(record)
			take = func(record []byte) []byte { p.Values.Give(); return record }
		}
	}
	if err != nil {
		return err
	}
	p.Used |= used
	p.Gap = p.Gap || r.Seq() != p.LastSeq+1
	m, own, err := p.memtable(record, arena)
	if err != nil {
		return err
	}
	if used&manifest.FeatureSeparatedInLogs != 0 {
		err = p.Values.Hold(m, record)
	}
	if err == nil {
		p.LastSeq = r.Last()
		if own != nil {
			record = take(record)
			err = m.Fill(record, own)
		} else {
			err = m.Apply(record)
		}
	}
	if own == nil {
		m.Release(arena) // before folds look for room
	}
	if err == nil && used&manifest.FeatureMerge != 0 && p.Combine != nil {
		err = m.FoldOperands(record, p.Combine)
	}
	return err
}

// memtable returns the memtable for a record that takes arena bytes, with room for it: one of its own, and its order,
// if the record is large.
func (p *Replayer) memtable(record []byte, arena int) (m *memtable.Memtable, own *memtable.Order, err error) {
	if arena >= p.OwnTable {
		own, _ = memtable.Sort(record)
	}
	switch n := len(p.Mems); {
	case own != nil:
		m = memtable.NewForRecord(own)
		m.Log = p.Log
	case n > 0 && p.Mems[n-1].Log == p.Log && p.Mems[n-1].Reserve(arena):
		return p.Mems[n-1], nil, nil
	default:
		if m = memtable.New(int(max(p.arena(), int64(arena)+memtable.Slack))); !m.Reserve(arena) {
			return nil, nil, memtable.ErrFull
		}
		m.Log = p.Log
	}
	p.Share.AddReplayed(m.Bytes())
	p.Mems = append(p.Mems, m)
	return m, own, nil
}
