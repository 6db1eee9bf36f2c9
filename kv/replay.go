package kv

import (
	"errors"
	"fmt"
	"io"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/values"
	"github.com/siftkv/siftkv/internal/wal"
)

// A RecoveryMode says what Open makes of logs that are not whole. Dropped writes are
// reported: by Options.Events.RecoveryDropped, in Metrics, and by the logger. Only logs
// are concerned; a damaged manifest is an error in every mode, and a damaged table is one
// to calls that read it.
type RecoveryMode uint8

const (
	// PointInTime recovers the longest history that is certain to have no hole. It stops
	// where a log breaks off, or is damaged in bytes that a crash may have left so. All
	// writes that were acknowledged as synced are before that place. Damage that no
	// crash explains, to bytes that the log proves to have been synced, is an error. It
	// is the default.
	PointInTime RecoveryMode = iota

	// TolerateTornTail lets only the last log break off, in its last record. A
	// damaged record, also one that was never synced, and a log that has lost its
	// end while later ones have writes, are errors. After a power cut that may happen
	// without a fault, if writes were not synced.
	TolerateTornTail

	// Absolute lets nothing pass: every log must have been closed cleanly, as
	// Close leaves it. After any crash Open returns an error.
	Absolute

	// SkipCorrupt recovers all records that can be read, in order, and passes over
	// those that cannot. The store may then have holes: later writes without
	// earlier ones. For getting at what is left when the other modes refuse.
	SkipCorrupt

	numRecoveryModes
)

// String returns the mode's name.
func (m RecoveryMode) String() string {
	names := [numRecoveryModes]string{"PointInTime", "TolerateTornTail", "Absolute", "SkipCorrupt"}
	if m >= numRecoveryModes {
		return fmt.Sprintf("RecoveryMode(%d)", uint8(m))
	}
	return names[m]
}

// reportDropped reports writes that recovery drops.
func (d *DB) reportDropped(l DroppedInfo) {
	d.counters.RecoveryDrops.Add(1)
	d.counters.RecoveryDroppedBytes.Add(uint64(l.Bytes))
	d.log.Warn("recovery drops writes", "log", l.File, "offset", l.Offset, "bytes", l.Bytes, "reason", l.Reason)
	tell(d, "RecoveryDropped", d.opts.Events.RecoveryDropped, l)
}

// replay reads the WALs into memtables, oldest first, as the recovery mode says: those
// after write lastSeq. The store was closed cleanly at write closed, if that is not 0. Used
// is which features the writes use. The memtables are the caller's, also after an error.
func (d *DB) replay(logs []uint64, lastSeq, closed base.SeqNum) (mems []*memTable, used manifest.Features,
	_ base.SeqNum, err error) {
	p := replayer{d: d, lastSeq: lastSeq, values: values.Replay{Store: d.values}}
	defer p.values.Close()
	for i, num := range logs {
		whole, err := p.replayLog(num)
		if err != nil {
			return p.mems, 0, 0, err
		}
		if whole || d.opts.RecoveryMode == SkipCorrupt {
			continue
		}
		unused, err := d.neverUsed(num, logs[i+1:], p.lastSeq, closed)
		if err != nil {
			return p.mems, 0, 0, err
		}
		if unused {
			continue
		}
		if err := d.dropLogs(num, logs[i+1:]); err != nil {
			return p.mems, 0, 0, err
		}
		break
	}
	return p.mems, p.used, p.lastSeq, nil
}

// neverUsed reports whether a log was prepared and never used, and could not be removed, or
// was there again after a power cut. Such a log is empty, and nothing is missing. The next
// log that is not empty goes on with the write after lastSeq, or the store was closed at
// lastSeq. Neither can be said of a log that has lost what it held: that was one write at
// least.
func (d *DB) neverUsed(num uint64, later []uint64, lastSeq, closed base.SeqNum) (bool, error) {
	c, err := d.examineLog(num)
	if err != nil || c.size > 0 {
		return false, err
	}
	for _, num := range later {
		if c, err = d.examineLog(num); err != nil || c.size > 0 {
			return c.firstSeq == lastSeq+1, err
		}
	}
	return closed > 0 && closed == lastSeq, nil
}

// dropLogs drops the logs that come after one that was not closed cleanly, and may have
// lost its end. It returns an error if the mode, or what is in them, forbids that.
//
// Empty logs count for nothing: a crash leaves one that was just created. In PointInTime,
// the others must never have been synced: then nothing was promised about the writes that
// they hold. If one was, so was the log before it, and no crash explains that it has lost
// its end.
func (d *DB) dropLogs(torn uint64, later []uint64) error {
	damage := func(format string, args ...any) error {
		return &CorruptionError{File: d.path(manifest.FileWAL, torn), Offset: -1, Hint: d.hint(),
			What: fmt.Sprintf("the log "+format, args...)}
	}
	if d.opts.RecoveryMode == Absolute {
		return damage("was not closed cleanly: writes that were not synced may be missing (recovery mode Absolute)")
	}
	for _, num := range later {
		name := manifest.FileName(manifest.FileWAL, num)
		c, err := d.examineLog(num)
		switch {
		case err != nil:
			return err
		case !c.holdsAny:
		case c.syncedTo > 0:
			return damage("has lost its end, although %s, which came later, was synced", name)
		case d.opts.RecoveryMode == TolerateTornTail:
			return damage("has lost its end, although %s came later (recovery mode TolerateTornTail)", name)
		default:
			d.reportDropped(DroppedInfo{File: d.path(manifest.FileWAL, num), Bytes: c.size,
				Reason: manifest.FileName(manifest.FileWAL, torn) + ", which came before, has lost its end"})
		}
	}
	return nil
}

// readLog calls f with a reader of a WAL, and with the name and the size of its file.
func (d *DB) readLog(num uint64, f func(r *wal.Reader, name string, size int64) error) (err error) {
	name := d.path(manifest.FileWAL, num)
	file, err := d.fs.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size, err := file.Size()
	if err != nil {
		return err
	}
	return f(wal.NewReader(file, name, num), name, size)
}

// logContent is what a look at a log tells.
type logContent struct {
	holdsAny bool  // a record, or what may have been some
	syncedTo int64 // up to where it proves that it had been synced
	size     int64
	firstSeq base.SeqNum // of the first write; 0: it cannot be read

	lastRecord int64 // where the last record that can be read begins
}

func (d *DB) examineLog(num uint64) (c logContent, err error) {
	err = d.readLog(num, func(r *wal.Reader, _ string, size int64) error {
		c.size = size
		var err error
		for err == nil {
			var record []byte
			record, err = r.Next()
			if err == nil && !c.holdsAny {
				c.firstSeq = firstSeq(record)
			}
			if err == nil {
				c.holdsAny, c.lastRecord = true, r.Offset()
			}
		}
		// Unless it ends with its header, how it ends does not matter.
		c.holdsAny = c.holdsAny || !errors.Is(err, io.EOF) && size > wal.HeaderSize
		c.syncedTo = r.SyncedTo()
		return nil
	})
	return c, err
}

// firstSeq returns the number of a record's first write; 0 if it is no record.
func firstSeq(record []byte) base.SeqNum {
	r, err := batchrepr.NewReader(record)
	if err != nil {
		return 0
	}
	return r.Seq()
}

type replayer struct {
	d       *DB
	log     uint64           // what memtables are marked with, and not shared by: 0, or a log's number
	mems    []*memTable      // oldest first
	combine memtable.Combine // nil: operands stay as they are
	used    manifest.Features
	lastSeq base.SeqNum
	gap     bool // a write is not the one that follows the last
	values  values.Replay
}

// replayLog replays one WAL. It reports whether the log was closed cleanly.
func (p *replayer) replayLog(num uint64) (whole bool, err error) {
	err = p.d.readLog(num, func(r *wal.Reader, name string, size int64) error {
		var lost *DroppedInfo // what has just been skipped
		for {
			record, err := r.Next()
			if lost != nil {
				lost.Bytes += r.Skipped()
				p.d.reportDropped(*lost)
				lost = nil
			}
			switch {
			case errors.Is(err, io.EOF):
				whole = r.Clean()
				return nil
			case err == nil:
				err := p.replayRecord(r, name, record)
				if p.mayEndAt(r, num, err) {
					at := r.Offset()
					p.d.reportDropped(DroppedInfo{File: name, Offset: at, Bytes: size - at,
						Reason: "a value is not whole, and the log does not prove that it was synced: " + err.Error()})
					return nil
				}
				if err != nil {
					return err
				}
				continue
			case p.mayEndWith(r, err):
				at := r.BrokenAt()
				p.d.reportDropped(DroppedInfo{File: name, Offset: at, Bytes: size - at,
					Reason: "the log breaks off, and does not tell whether what is missing was synced: " + err.Error()})
				return nil
			case p.d.opts.RecoveryMode != SkipCorrupt || !wal.Broken(err):
				return p.refuse(name, r, err)
			}
			lost = &DroppedInfo{File: name, Offset: r.BrokenAt(), Bytes: -r.Skipped(), Reason: err.Error()}
			r.Skip() // if nothing follows, Next says so
		}
	})
	return whole, err
}

// mayEndWith reports whether the mode takes what ended the log for the trace of a crash.
func (p *replayer) mayEndWith(r *wal.Reader, err error) bool {
	switch p.d.opts.RecoveryMode {
	case PointInTime:
		return r.CrashExplains(err)
	case TolerateTornTail:
		return errors.Is(err, wal.ErrTornTail)
	}
	return false
}

// mayEndAt reports whether the log may end before the record that was just read and could not be replayed. It may if
// the record's values are not whole, it is not proved to have been synced, and the mode takes that for the trace of a
// crash.
func (p *replayer) mayEndAt(r *wal.Reader, log uint64, err error) bool {
	if v, ok := errors.AsType[*values.ValueError](err); !ok || !v.Torn {
		return false
	}
	if p.d.opts.RecoveryMode != PointInTime && p.d.opts.RecoveryMode != TolerateTornTail {
		return false
	}
	c, err := p.d.examineLog(log)
	if err != nil || r.Offset() < c.syncedTo {
		return false
	}
	return p.d.opts.RecoveryMode == PointInTime || r.Offset() == c.lastRecord
}

// refuse makes the error for a log that ends in a way that the mode does not accept.
func (p *replayer) refuse(name string, r *wal.Reader, err error) error {
	if wal.Broken(err) && !errors.Is(err, ErrCorruption) { // a torn tail
		err = &CorruptionError{File: name, Offset: r.BrokenAt(), Cause: err,
			What: fmt.Sprintf("the log breaks off (recovery mode %v)", p.d.opts.RecoveryMode)}
	}
	return p.d.withHint(err)
}

// replayRecord replays a record that was read whole. One of a newer format is whole too, and so may be one whose
// values could not be read: no mode passes over them.
func (p *replayer) replayRecord(r *wal.Reader, name string, record []byte) error {
	err := p.record(record, r.Take)
	v, ofValue := errors.AsType[*values.ValueError](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNewerFormat), ofValue && !errors.Is(v, ErrCorruption):
		return fmt.Errorf("%s: %w", name, err)
	case p.d.opts.RecoveryMode == SkipCorrupt:
		p.d.reportDropped(DroppedInfo{File: name, Offset: r.Offset(), Bytes: int64(len(record)), Reason: err.Error()})
		return nil
	}
	return &CorruptionError{File: name, Offset: r.Offset(), What: "a record of the log", Cause: err, Hint: p.d.hint()}
}

// arena returns the bytes for points of the next memtable. A short log needs no large memtable, which would have to be
// cleared each time that a store is opened. So each is four times as large as the last, until those of the log are
// together as large as the one that it was written from.
func (p *replayer) arena() int64 {
	next, full := int64(firstReplayArena), p.d.replayArena()
	rest := full
	for _, m := range p.mems {
		if m.Log == p.log {
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

// record applies one batch. If the record must be kept, take makes its memory the replayer's.
func (p *replayer) record(record []byte, take func([]byte) []byte) error {
	r, err := batchrepr.NewReader(record)
	if err != nil {
		return err
	}
	if r.Len() == 0 {
		return batchrepr.ErrMalformed
	}
	if r.Seq() <= p.lastSeq {
		return fmt.Errorf("sequence number %d comes again", r.Seq())
	}
	arena, used, err := memtable.Measure(record)
	if err == nil && used&manifest.FeatureApartInLogs != 0 {
		if record, err = p.values.Inline(record, r.Seq()); err == nil {
			arena, _, err = memtable.Measure(record)
			take = func(record []byte) []byte { p.values.Give(); return record }
		}
	}
	if err != nil {
		return err
	}
	p.used |= used
	p.gap = p.gap || r.Seq() != p.lastSeq+1
	m, own, err := p.memtable(record, arena)
	if err != nil {
		return err
	}
	if used&manifest.FeatureApartInLogs != 0 {
		err = p.values.Hold(m, record)
	}
	if err == nil {
		p.lastSeq = r.Seq() + base.SeqNum(r.Len()) - 1
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
	if err == nil && used&manifest.FeatureMerge != 0 && p.combine != nil {
		err = m.FoldOperands(record, p.combine)
	}
	return err
}

// memtable returns the memtable for a record that takes arena bytes, with room for it: one of its own, and its order,
// if the record is large.
func (p *replayer) memtable(record []byte, arena int) (m *memTable, own *memtable.Order, err error) {
	if arena >= p.d.opts.ownTable() {
		own, _ = memtable.Sort(record)
	}
	switch n := len(p.mems); {
	case own != nil:
		m = memtable.NewForRecord(own)
		m.Log = p.log
	case n > 0 && p.mems[n-1].Log == p.log && p.mems[n-1].Reserve(arena):
		return p.mems[n-1], nil, nil
	default:
		if m = newMemTable(max(p.arena(), int64(arena)+memtable.Slack), p.log); !m.Reserve(arena) {
			return nil, nil, memtable.ErrFull
		}
	}
	p.d.share.AddReplayed(m.Bytes())
	p.mems = append(p.mems, m)
	return m, own, nil
}

// dropAll drops memtables that did not come into use.
func dropAll(mems []*memTable) {
	for _, m := range mems {
		m.Drop()
	}
}
