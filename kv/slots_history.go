package kv

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/changelog"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/replay"
	"github.com/siftkv/siftkv/internal/values"
	"github.com/siftkv/siftkv/internal/vfs"
)

// What slots need of the history is kept by those who would remove it: a flush, and an Open.

// keepLogs returns the parts of the history that the logs of memtables are which a flush is about to write to tables.
// If a slot needs them, they are durable.
func keepLogs(d *DB, f flushJob, files *values.Flush) ([]manifest.KeptPart, error) {
	to := base.SeqNum(f.mems[len(f.mems)-1].LastSeq.Load())
	if f.next != nil {
		to = f.limit
	}
	d.slots.LearnFar(false)
	from := d.slots.Acknowledged(to)
	switch {
	case from == to:
		return nil, nil
	case f.next != nil || !files.Whole() || d.objects != nil:
		return keepCopy(d, f, from, to)
	}
	if err := d.commits.SyncEnded(f.mems[len(f.mems)-1].Log); err != nil {
		return nil, err
	}
	var parts []manifest.KeptPart
	for _, m := range f.mems {
		p := manifest.KeptPart{Log: m.Log, Last: base.SeqNum(m.LastSeq.Load()), Time: keptNow()}
		p.Files = values.FilesOf(m)
		if err := changelog.Measure(d.fs, d.dir, &p); err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// keepCopy is keepLogs of logs that broke, or whose values are not whole, or that are in an object store. There one
// object has the history of many entries, which can be deleted.
func keepCopy(d *DB, f flushJob, from, to base.SeqNum) ([]manifest.KeptPart, error) {
	d.mu.Lock()
	from = max(from, d.current.LastSeq)
	d.mu.Unlock()
	var logs []uint64
	for _, m := range f.mems {
		if last := base.SeqNum(m.LastSeq.Load()); last == 0 || last > from { // the active memtable has none yet
			logs = append(logs, m.Log)
		}
	}
	parts, err := copyLogs(d, changelog.Copier{Whole: d.commits.Whole}, logs, from, to)
	return parts, d.slots.CopyFailed(err)
}

// dropCopies removes copies of logs that no slot needs.
func dropCopies(d *DB, parts []manifest.KeptPart) {
	for i := range parts {
		if path := filepath.Join(d.dir, parts[i].LogName()); parts[i].Copy && !d.slots.Keeps(path) {
			d.cleaner.File(path)
		}
	}
}

// keptNow returns the time of a part that is kept now.
func keptNow() uint64 { return uint64(max(time.Now().Unix(), 0)) }

// copyLogs returns the parts that the history after number from, up to number to, is: copied out of logs that may have
// more, or in place if a store was closed cleanly.
func copyLogs(d *DB, c changelog.Copier, logs []uint64, from, to base.SeqNum) ([]manifest.KeptPart, error) {
	v := values.Replay{Store: d.values}
	defer v.Close()
	c.FS, c.Dir, c.Time, c.Inline = d.fs, d.dir, keptNow(), v.Inline
	return c.Keep(logs, from, to, d.newFileNum)
}

// recoverSlots finds the slots of a store that was recovered, and keeps what was replayed, which is about to be in
// tables.
func recoverSlots(d *DB, r *replay.Recovery) error {
	lost := ""
	switch {
	case d.opts.RecoveryMode == SkipCorrupt:
		lost = "the store was opened with SkipCorrupt, which may leave out writes"
	case d.objects.abandonedLog():
		lost = "the log with the store's last writes was abandoned"
	}
	if err := d.slots.Recover(r.State.Slots, r.LastSeq, lost); err != nil || !d.slots.Active() {
		return err
	}
	c := changelog.Copier{Clean: r.State.Closed > 0}
	parts, err := copyLogs(d, c, r.Replayed, r.Version.LastSeq, r.LastSeq)
	if err != nil && d.lacksSpace(err) {
		first := err
		c.Clean = false // a sync that fails does so once
		if parts, err = copyLogs(d, c, r.Replayed, r.Version.LastSeq, r.LastSeq); err != nil {
			err = errors.Join(first, err)
		}
	}
	switch {
	case changelog.Passes(err) && !vfs.IsNoSpace(err):
		return err
	case err != nil: // a full disk does not keep the store from being opened
		d.slots.Lose(err.Error())
	default:
		d.slots.Keep(parts...)
	}
	return nil
}
