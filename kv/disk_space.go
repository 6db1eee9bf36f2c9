package kv

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Blob GC needs room before it frees some. A store with blob files asks its disk what is free after each flush and
// compaction. It may have less garbage where its logs, flushes and blob GC would lack room (see blobSpace). So it
// collects garbage, and slows writers down, before the disk is full.
//
// Not every disk tells, and others may take what was free. For this the store has a ballast: a file of random bytes,
// as large as a blob file. An operation that finds no room removes the ballast and is tried again. Then files are
// collected one by one, and only compactions and flushes write, until little garbage is left and there is room for the
// ballast. Else a full disk would have no room for blob GC. A store that has failed for want of space compacts between
// its attempts to resume.

// diskSpace is what a store knows about the room on its disk.
type diskSpace struct {
	free atomic.Int64 // bytes, when last asked; 0: something found no room since; math.MaxInt64: not known
	full atomic.Bool  // something found no room, and the ballast was not made since

	mu      sync.Mutex // of the file
	ballast int64      // bytes of the file; 0: there is none
}

// known returns what the choice of compactions must know. Disk.WithObsolete counts files that are removed once readers
// no longer need them. Blob GC in place of these would copy values, take room for them, and free as little, until the
// disk is full. On a full disk they do not count: files that came after the readers are worth collecting.
func (s *diskSpace) known(h *version.History) compaction.Disk {
	disk := compaction.Disk{Free: s.free.Load(), Full: s.full.Load()}
	disk.WithObsolete = disk.Free
	if disk.Free < math.MaxInt64 && !disk.Full {
		disk.WithObsolete += h.Obsolete()
	}
	return disk
}

// lacksSpace takes note of an error that may say that the disk is full: the ballast goes then. It reports whether what
// has failed should be tried again at once: it has more room, or will ask for less.
func (d *DB) lacksSpace(err error) bool {
	if !vfs.IsNoSpace(err) || d.opts.Objects != nil {
		return false
	}
	s := &d.space
	s.mu.Lock()
	s.free.Store(0)
	again := !s.full.Swap(true)
	if s.ballast > 0 {
		s.ballast, again = 0, true
		d.log.Warn("the disk is full: the store uses its ballast", "dir", d.dir, "error", err)
		if err := d.fs.Remove(d.ballastPath()); err != nil {
			d.log.Warn("the ballast could not be removed", "dir", d.dir, "error", err)
		}
	}
	s.mu.Unlock()
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

func (d *DB) ballastPath() string { return filepath.Join(d.dir, manifest.BallastName) }

// askSpace asks the disk what is free, after unneeded files are removed if that is little. It returns what the
// disk says: math.MaxInt64 if it does not tell, or the store has no blob files.
func (d *DB) askSpace() int64 {
	d.mu.Lock()
	blobs, scarce := d.current.BlobTotals().Files > 0, d.scarce()
	d.mu.Unlock()
	free, s := int64(math.MaxInt64), &d.space
	if blobs {
		if scarce {
			d.cleaner.Wait()
		}
		free = vfs.FreeSpace(d.opts.fs, d.dir)
	}
	if free < math.MaxInt64 || !s.full.Load() {
		s.free.Store(free)
	}
	return free
}

// scarce reports whether so little was free that it matters how much it is by now. The caller holds d.mu.
func (d *DB) scarce() bool { return d.space.free.Load() < 2*d.opts.compaction().SpaceWanted(d.current) }

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
		d.makeBallast(size)
		d.noteSpace()
	}
}

// makeBallast makes the ballast, unless there is one of at least half the size. On a disk that does not tell what is
// free it shows whether there is room.
func (d *DB) makeBallast(size int64) {
	s := &d.space
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ballast < size/2 {
		f, err := d.fs.Create(d.ballastPath())
		if err == nil {
			_, err = io.CopyN(f, rand.NewChaCha8([32]byte{}), size) // no file system stores them in fewer bytes
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			d.log.Debug("there is no room for the ballast", "dir", d.dir, "error", err)
			_ = d.fs.Remove(d.ballastPath()) // it need not be there
			s.ballast = 0
			return
		}
		s.ballast = size
	}
	s.full.Store(false)
	s.free.CompareAndSwap(0, math.MaxInt64)
}

// awaitsRoom reports whether there may be no room for another log and for flushes of all memtables, while a compaction
// keeps files that are removed after it. The caller holds d.mu.
func (d *DB) awaitsRoom() bool {
	need := 2 * d.opts.MemtableSize
	for _, m := range d.imms {
		need += m.Size()
	}
	return d.compactions.Running > 0 && d.space.free.Load() < need && d.history.Obsolete() > 0
}

// fullDisk reports whether the store has failed for want of space, and can still compact. The caller holds d.mu.
func (d *DB) fullDisk() bool {
	return d.failure != nil && vfs.IsNoSpace(d.failure) && d.resumer.broken&(brokenManifest|fatal) == 0
}

// mayCompact reports whether compactions may begin: of a store on a full disk, between attempts to resume, which need
// the same room. The caller holds d.mu.
func (d *DB) mayCompact() bool { return d.failure == nil || d.fullDisk() && !d.flushing }

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
