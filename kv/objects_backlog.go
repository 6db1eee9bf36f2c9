package kv

import "github.com/siftkv/siftkv/internal/remote"

// Each entry of the log in an object store is a request when the store is opened. So a memtable is flushed when its log
// has many entries, however small it is, and earlier once the store is at rest.

// watchLongLogs has the active memtable flushed when its log has many entries in an object store.
func (d *DB) watchLongLogs() {
	if objects, ok := d.opts.fs.(*remote.FS); ok {
		objects.WatchLogs(d.flushLongLog)
	}
}

// flushLongLog begins to flush the active memtable if it still has this log. It does not where level 0 would make
// writers wait: the log is reported again.
func (d *DB) flushLongLog(log uint64) {
	if !d.early.Begin() {
		return
	}
	go d.early.Run(func() {
		d.mu.Lock()
		crowded := d.current.NumRuns(0) >= d.opts.L0SlowdownThreshold
		d.mu.Unlock()
		if crowded {
			return
		}
		if err := d.flushEarly(log); err != nil {
			d.log.Debug("a memtable with a long log was not flushed", "error", err)
		}
	})
}

// logEntries returns the number of entries that a log has in an object store.
func (d *DB) logEntries(log uint64) int {
	if objects, ok := d.opts.fs.(*remote.FS); ok {
		return objects.LogEntries(log)
	}
	return 0
}
