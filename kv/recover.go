package kv

import (
	"errors"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/job"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/replay"
	"github.com/siftkv/siftkv/internal/values"
	"github.com/siftkv/siftkv/internal/version"
)

// recover opens a store that is there.
func (d *DB) recover() (err error) {
	r := replay.Recovery{Replayer: d.replayer(), NextFile: &d.nextFile}
	if d.objects != nil {
		r.Missing = d.objects.reportLostLogs()
	}
	if err := r.ReadManifest(); err != nil {
		return err
	}
	v := r.Version
	d.storeID = r.State.StoreID
	installed := false
	defer func() {
		if !installed { // or a function of the application panicked
			err = errors.Join(err, v.CloseNew(&d.tables))
		}
	}()
	if err := d.checkFiles(v); err != nil {
		return err
	}
	if d.opts.Objects != nil {
		_ = v.OpenNew(&d.tables, &d.values.Blobs, values.MaxRequests) // a damaged one shows when it is read
	}
	err = r.ReplayLogs()
	mems, lastSeq := r.Mems, r.LastSeq
	defer func() { // unless they are shown to readers
		for _, m := range mems {
			m.Drop()
		}
	}()
	if err != nil {
		return err
	}
	if err := errors.Join(d.values.CheckListed(v), r.CheckClosed(r.Manifest, r.State.Closed)); err != nil {
		return err
	}
	if d.operands, err = d.opts.combiner(v.Features()|r.Used, r.State.Merger, d.dir); err != nil {
		return err
	}
	if d.opts.ReadOnly {
		d.startReadOnly(v, mems, lastSeq)
	} else {
		if err := recoverSlots(d, &r); err != nil {
			return err
		}
		if err := d.startWriting(v, mems, lastSeq); err != nil {
			return err
		}
	}
	installed = true
	return nil
}

// checkFiles finds tables and blob files that are missing or have another size, without opening them. With
// Options.TolerateMissingValues such blob files are left alone.
func (d *DB) checkFiles(v *version.Version) error {
	var tolerated func(num uint64, err error)
	if d.opts.TolerateMissingValues {
		tolerated = func(num uint64, err error) { d.leaveAlone(num, err, true) }
	}
	return v.CheckFiles(d.fs, d.dir, d.opts.hint(d.dir), tolerated)
}

// startWriting serves what was recovered, from tables alone.
func (d *DB) startWriting(v *version.Version, mems []*memTable, lastSeq base.SeqNum) error {
	d.space.FindBallast()
	flushed, err := d.flushRecovered(v, mems, lastSeq)
	if err != nil && d.lacksSpace(err) {
		flushed, err = d.flushRecovered(v, mems, lastSeq)
	}
	if err != nil {
		return d.explainFull(err, v, mems)
	}
	d.memory.share.SetReplayed(0)
	if err := d.start(flushed, lastSeq); err != nil {
		return d.explainFull(err, v, mems)
	}
	d.cleaner.Sweep(flushed, d.logNum, d.manifest.Num())
	d.scheduleCompactions()
	if d.slots.Active() {
		d.marks.Start(0)
	}
	return nil
}

// flushRecovered writes recovered memtables to level 0.
func (d *DB) flushRecovered(v *version.Version, mems []*memTable, lastSeq base.SeqNum) (*version.Version, error) {
	e := &manifest.Edit{LastSeq: lastSeq}
	if mems = slices.DeleteFunc(mems, (*memTable).Empty); len(mems) > 0 {
		env, files := d.jobEnv(d.operands), d.values.Flush(mems)
		env.Stop = nil
		j := job.Flush{Version: v, Memtables: mems, Limit: base.MaxSeqNum, Values: files}
		out, err := j.Do(env)
		out.Stats.CountIn(&d.counters, d.log)
		if err != nil {
			return nil, err
		}
		out.AddTo(e, 0, 0)
		files.List(e)
	}
	return v.Apply(e)
}

// startReadOnly serves what was recovered, from memory where it is in no table.
func (d *DB) startReadOnly(v *version.Version, mems []*memTable, lastSeq base.SeqNum) {
	d.visible.Store(uint64(lastSeq))
	if combine := d.operands.EntryFunc(); combine != nil {
		for _, m := range mems {
			m.FoldAll(combine)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.imms = mems
	d.mem = newMemTable(1<<10, 0)
	d.installVersion(v)
	d.installState()
}

// A RecoveryMode says what Open makes of logs that are not whole. Dropped writes are reported: by
// Options.Events.RecoveryDropped, in Metrics, and by the logger. Only logs are concerned; a damaged manifest is an
// error in every mode, and a damaged table is one to calls that read it.
type RecoveryMode uint8

const (
	// PointInTime recovers the longest history that is certain to have no hole. It stops where a log breaks off, or is
	// damaged in bytes that a crash may have left so. All writes that were acknowledged as synced are before that
	// place. Damage that no crash explains, to bytes that the log proves to have been synced, is an error. It is the
	// default.
	PointInTime = RecoveryMode(replay.PointInTime)

	// TolerateTornTail lets only the last log break off, in its last record. A damaged record, also one that was never
	// synced, and a log that has lost its end while later ones have writes, are errors. After a power cut that may
	// happen without a fault, if writes were not synced.
	TolerateTornTail = RecoveryMode(replay.TolerateTornTail)

	// Absolute lets nothing pass: every log must have been closed cleanly, as
	// Close leaves it. After any crash Open returns an error.
	Absolute = RecoveryMode(replay.Absolute)

	// SkipCorrupt recovers all records that can be read, in order, and passes over those that cannot. The store may
	// then have holes: later writes without earlier ones. For getting at what is left when the other modes refuse.
	SkipCorrupt = RecoveryMode(replay.SkipCorrupt)

	numRecoveryModes = RecoveryMode(replay.NumModes)
)

// String returns the mode's name.
func (m RecoveryMode) String() string { return replay.Mode(m).String() }

// reportDropped reports writes that recovery drops.
func (d *DB) reportDropped(l DroppedInfo) {
	d.counters.RecoveryDrops.Add(1)
	d.counters.RecoveryDroppedBytes.Add(uint64(l.Bytes))
	d.log.Warn("recovery drops writes", "log", l.File, "offset", l.Offset, "bytes", l.Bytes, "reason", l.Reason)
	tell(d, "RecoveryDropped", d.opts.Events.RecoveryDropped, l)
}

// replayer returns a replayer of the store's logs.
func (d *DB) replayer() replay.Replayer {
	return replay.Replayer{FS: d.fs, Dir: d.dir, Hint: d.opts.hint(d.dir), Mode: replay.Mode(d.opts.RecoveryMode),
		Dropped: func(l replay.Dropped) { d.reportDropped(DroppedInfo(l)) },
		Arena:   d.opts.memtableArena(), OwnTable: d.opts.ownTable(), Share: d.memory.share,
		Values: values.Replay{Store: d.values}}
}
