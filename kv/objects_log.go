package kv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/siftkv/siftkv/internal/remote"
)

// checkDir refuses options that need a directory on the local disk where none is given.
func (o *Options) checkDir(dir string) error {
	switch {
	case dir != "":
		return nil
	case o.Objects.CacheSize > 0:
		return invalidf("Objects.CacheSize is set, and the directory's name is empty")
	case o.Objects.LocalLog && !o.ReadOnly:
		return invalidf("Objects.LocalLog is set, and the directory's name is empty")
	}
	return nil
}

// placeOf is what a directory of this machine is called on others.
func placeOf(dir string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "a machine without a name"
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return host + ":" + dir
}

// localLog reports whether this is a writer whose log is on the local disk, and the rest in an object store.
func (d *DB) localLog() bool {
	return d.opts.Objects != nil && d.opts.Objects.LocalLog && !d.opts.ReadOnly
}

// writtenTo names where a failed write may have been for: a directory, the object store, or one of the two.
func (d *DB) writtenTo() string {
	switch {
	case d.opts.Objects == nil:
		return d.dir
	case d.localLog():
		return d.localDir + " or the object store"
	}
	return "the object store"
}

// releaseLog has the store need no log on the local disk: it flushes what is in memory, and the end of the manifest
// says so. All writes have ended, and the logs are closed. If that fails, the log stays what it is: the store goes on
// from it, on this machine.
func (d *DB) releaseLog() error {
	if !d.localLog() || d.manifest.Log == nil {
		return nil
	}
	d.mu.Lock()
	mems := append(slices.Clone(d.imms), d.mem)
	empty := !slices.ContainsFunc(mems, func(m *memTable) bool { return !m.Empty() })
	job := flushJob{mems: mems, snapshots: d.snapshots.seqs(), limit: d.seq()}
	d.mu.Unlock()
	if !empty {
		next, err := d.createLog(d.newFileNum()) // from which the store would go on if the end were missing
		if err == nil {
			job.next = next
			err = errors.Join(d.flush(job), next.CloseFile())
		}
		if err != nil {
			return fmt.Errorf("what was written since the last flush is in the log in %s, and needed there: %w",
				d.localDir, err)
		}
	}
	if objects, ok := d.opts.fs.(*remote.FS); ok {
		objects.ReleaseLog()
	}
	return nil
}
