package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/job"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
)

// recover opens a store that is there: the manifest says which tables there are,
// and the WALs have the writes that are in no table yet.
func (d *DB) recover() (err error) {
	d.reportAbandonedLogs()
	num, err := manifest.Current(d.fs, d.dir)
	if err != nil {
		return base.WithHint(err, d.hint())
	}
	m, v, err := d.loadVersion(num)
	if err != nil {
		return base.WithHint(err, d.hint())
	}
	installed := false
	defer func() {
		if !installed { // or a function of the application panicked
			err = errors.Join(err, v.CloseFiles(&d.tables))
		}
	}()
	if err := d.checkTables(v); err != nil {
		return err
	}
	if d.opts.Objects != nil {
		_ = d.openTables(v) // a damaged one shows when it is read
	}
	logs, err := d.claimFiles(num, m)
	if err != nil {
		return err
	}
	p := d.replayer()
	p.LastSeq = v.LastSeq
	err = p.Logs(logs, m.Closed)
	mems, lastSeq := p.Mems, p.LastSeq
	defer func() { dropAll(mems) }() // unless they are shown to readers
	if err != nil {
		return err
	}
	if err := errors.Join(d.values.CheckListed(v), d.checkClosed(num, m, lastSeq)); err != nil {
		return err
	}
	if err := d.settleMerger(v.Features() | p.Used); err != nil {
		return err
	}
	if d.opts.ReadOnly {
		d.startReadOnly(v, mems, lastSeq)
	} else if err := d.startWriting(v, mems, lastSeq); err != nil {
		return err
	}
	installed = true
	return nil
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
	d.share.SetReplayed(0)
	if err := d.start(flushed, lastSeq, d.newFileNum()); err != nil {
		return d.explainFull(err, v, mems)
	}
	d.removeObsolete()
	d.scheduleCompactions()
	return nil
}

// loadVersion replays a manifest.
func (d *DB) loadVersion(num uint64) (s *version.ManifestState, v *version.Version, err error) {
	s = version.NewManifestState()
	if err := manifest.Load(d.fs, d.dir, num, s.Apply); err != nil {
		return nil, nil, err
	}
	d.storeID, d.operands.mergerName = s.StoreID, s.Merger
	d.nextFile.Store(max(d.nextFile.Load(), s.NextFile))
	v, err = s.Version(&version.Version{})
	if err != nil {
		return nil, nil, &CorruptionError{File: d.path(manifest.FileManifest, num), Offset: -1,
			What: "the levels are not in order", Cause: err, Hint: d.hint()}
	}
	return s, v, nil
}

// checkTables finds tables and blob files that are missing or have another size, without
// opening them. With Options.TolerateMissingValues such blob files are left alone.
func (d *DB) checkTables(v *version.Version) error {
	var errs []error
	v.All(func(level int, t *version.Table) {
		errs = append(errs, d.checkSize(d.tablePath(t.Num), t.Size, fmt.Sprintf("a table of level %d", level)))
	})
	for b := range v.Blobs() {
		err := d.checkSize(d.blobPath(b.Num), b.Size, "a blob file")
		if d.opts.TolerateMissingValues && errors.Is(err, ErrCorruption) {
			d.leaveAlone(b.Num, err, true)
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// checkSize returns an error if a file is missing, or has another size than it had.
func (d *DB) checkSize(name string, had int64, what string) error {
	size, err := d.fs.Stat(name)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err // whether it is there is not known
	case err != nil:
		return &CorruptionError{File: name, Offset: -1, What: what, Cause: err, Hint: d.hint()}
	case size != had:
		return &CorruptionError{File: name, Offset: min(size, had), Hint: d.hint(),
			What: fmt.Sprintf("%s has %d bytes, and had %d when it was written", what, size, had)}
	}
	return nil
}

// claimFiles makes sure that no new file takes the number of one that is there,
// and returns the numbers of the WALs to replay, in order.
func (d *DB) claimFiles(manifestNum uint64, m *version.ManifestState) (logs []uint64, err error) {
	names, err := d.fs.List(d.dir)
	if err != nil {
		return nil, err
	}
	if err := d.checkLocalLogs(m.LogNum); err != nil {
		return nil, err
	}
	next := max(d.nextFile.Load(), manifestNum+1)
	for _, name := range names {
		kind, num := manifest.ParseFileName(name)
		next = max(next, num+1)
		if kind == manifest.FileWAL && num >= m.LogNum {
			logs = append(logs, num)
		}
	}
	d.nextFile.Store(next)
	slices.Sort(logs)
	return logs, d.checkFirstLog(manifestNum, m, logs)
}

// checkFirstLog makes sure that the log is there at which recovery begins. A
// manifest's second edit comes when its log has been made; a checkpoint and a restored
// store, which need none, give the manifest's own number.
func (d *DB) checkFirstLog(manifestNum uint64, m *version.ManifestState, logs []uint64) error {
	what := "the log is missing"
	switch {
	case m.LogNum == 0 || len(logs) > 0 && logs[0] == m.LogNum:
		return nil
	case len(logs) > 0:
		// Later logs alone would make a history with a hole.
		what += ", although " + manifest.FileName(manifest.FileWAL, logs[0]) + ", which came later, is there"
	case m.Edits == 1 || m.LogNum == manifestNum:
		return nil
	}
	return d.refuseDropped(DroppedInfo{File: d.path(manifest.FileWAL, m.LogNum), Reason: what})
}

// checkClosed makes sure that a store which was closed cleanly has all its
// writes.
func (d *DB) checkClosed(manifestNum uint64, m *version.ManifestState, lastSeq base.SeqNum) error {
	if lastSeq >= m.Closed {
		return nil
	}
	return d.refuseDropped(DroppedInfo{File: d.path(manifest.FileManifest, manifestNum),
		Reason: fmt.Sprintf("the store was closed cleanly with writes up to number %d, and has those up to %d: "+
			"a log was cut off or is missing", m.Closed, lastSeq)})
}

// refuseDropped returns an error for lost writes whose loss no crash explains. In
// SkipCorrupt it reports them instead.
func (d *DB) refuseDropped(l DroppedInfo) error {
	if d.opts.RecoveryMode != SkipCorrupt {
		return &CorruptionError{File: l.File, Offset: -1, What: l.Reason, Hint: d.hint()}
	}
	d.reportDropped(l)
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
		d.countPass(&out.Stats)
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
	if combine := d.operands.combiner(); combine != nil {
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

// removeObsolete hands to the cleaner what a crash left behind: files of the
// store's own kinds that the version does not list. Others' files stay. A half-written file it
// removes itself, as its name is written again: the cleaner might remove the new one.
func (d *DB) removeObsolete() {
	names, err := d.fs.List(d.dir)
	if err != nil {
		d.log.Warn("obsolete files could not be listed", "dir", d.dir, "error", err)
		return
	}
	live := map[uint64]bool{}
	d.mu.Lock()
	d.current.All(func(_ int, t *version.Table) { live[t.Num] = true })
	for b := range d.current.Blobs() {
		live[b.Num] = true
	}
	logNum, manifestNum := d.logNum, d.manifest.Num()
	d.mu.Unlock()
	for _, name := range names {
		kind, num := manifest.ParseFileName(name)
		obsolete := (kind == manifest.FileTable || kind == manifest.FileBlob) && !live[num] ||
			kind == manifest.FileWAL && num < logNum ||
			kind == manifest.FileManifest && num != manifestNum ||
			kind == manifest.FileRestore || kind == manifest.FileIngest
		path := filepath.Join(d.dir, name)
		if obsolete {
			d.cleaner.File(path)
		}
		if kind == manifest.FileTemp {
			if err := d.fs.Remove(path); err != nil {
				d.log.Warn("a half-written file could not be removed", "file", path, "error", err)
			}
		}
	}
}
