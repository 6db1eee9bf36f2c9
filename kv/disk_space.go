package kv

import (
	"fmt"
	"math"

	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// lacksSpace takes note of an error that may say that the disk is full. It reports whether what has failed should be
// tried again at once.
func (d *DB) lacksSpace(err error) bool {
	if !vfs.IsNoSpace(err) || d.opts.Objects != nil {
		return false
	}
	again := d.space.Lack(err)
	d.noteSpace()
	return again
}

// noteSpace tells writers that the disk is full, or is no longer.
func (d *DB) noteSpace() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current != nil {
		d.noteRoom()
	}
}

// askSpace asks the disk what is free, after unneeded files are removed if that is little. It returns what the
// disk says: math.MaxInt64 if it does not tell, or the store has no blob files on it.
func (d *DB) askSpace() int64 {
	d.mu.Lock()
	blobs := d.opts.Objects == nil && d.current.BlobTotals().Files > 0
	scarce := d.compactionInput(d.current).ScarceSpace()
	d.mu.Unlock()
	free := int64(math.MaxInt64)
	if blobs {
		if scarce {
			d.cleaner.Wait()
		}
		free = vfs.FreeSpace(d.opts.harness.FS, d.dir)
	}
	d.space.Note(free)
	return free
}

// afterWork asks the disk what is free after a flush or a compaction, and makes the ballast if there is room for it.
func (d *DB) afterWork() {
	free := d.askSpace()
	d.mu.Lock()
	v := d.current
	in := d.compactionInput(v)
	s, size, wanted := in.BlobSpace(), in.NewBlobSize(v), in.SpaceWanted(v)
	rests := d.failure == nil && !d.closing && !s.NeedsGC()
	d.mu.Unlock()
	if uint64(size) > v.BlobTotals().RecordBytes/16 || d.opts.InMemory || d.opts.Objects != nil {
		size = 0 // the store is small, or has no disk
	}
	if rests && free-size > wanted/2 {
		d.space.MakeBallast(size)
		d.noteSpace()
	}
}

// fullDisk reports whether the store has failed for want of space, and can still compact. The caller holds d.mu.
func (d *DB) fullDisk() bool {
	return d.failure != nil && vfs.IsNoSpace(d.failure) && d.resumer.broken&(brokenManifest|fatal) == 0
}

// explainFull adds to the error of a store that could not be opened how much room it needs for what its logs hold.
func (d *DB) explainFull(err error, v *version.Version, mems []*memTable) error {
	if !vfs.IsNoSpace(err) || d.opts.Objects != nil {
		return err
	}
	need := 1<<16 + int64(len(d.snapshotEdit(v).Append(nil)))
	for _, m := range mems {
		need += m.Size() + m.Size()/8
	}
	return fmt.Errorf("%w; opening the store takes %d bytes, for what is in its logs: have as much free on the file "+
		"system of %s", err, need, d.dir)
}
