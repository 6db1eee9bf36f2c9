package kv

import (
	"maps"
	"slices"
	"sync"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
)

// A blob file that was written before its handles were committed is in no version. The live bytes of a version's files
// are sums over tables, and no table refers to it. Until a flush writes the first table that does, the memtable with
// the handles holds the file, and the log keeps recovery from removing it. The edit of that flush lists the file. If
// nothing of it is left by then, it is removed once the memtable is no longer read.

// A heldBlob is a blob file that memtables hold. Release releases it for one of them.
type heldBlob struct {
	*version.Blob
	d   *DB
	log *logBlob // not nil: it is the file of a log

	// Guarded by heldBlobs.mu.
	holders  int  // memtables
	unneeded bool // tables have all that the memtables had, and none refers to the file
}

// heldBlobs are the blob files that memtables hold, or whose handles are about to be committed.
type heldBlobs struct {
	mu    sync.RWMutex
	files map[uint64]*heldBlob
}

// holdBlob makes a blob file readable by handles in memtables, and returns it for one more memtable to hold.
func (d *DB) holdBlob(f manifest.BlobFile) *heldBlob {
	d.held.mu.Lock()
	defer d.held.mu.Unlock()
	b := d.held.files[f.Num]
	if b == nil {
		b = &heldBlob{Blob: &version.Blob{BlobFile: f}, d: d}
		if d.held.files == nil {
			d.held.files = map[uint64]*heldBlob{}
		}
		d.held.files[f.Num] = b
	}
	b.holders++
	return b
}

// holdLogBlob is holdBlob for the file of a log, which is being written.
func (d *DB) holdLogBlob(b *version.Blob, l *logBlob) *heldBlob {
	held := &heldBlob{Blob: b, d: d, log: l, holders: 1}
	d.held.mu.Lock()
	defer d.held.mu.Unlock()
	if d.held.files == nil {
		d.held.files = map[uint64]*heldBlob{}
	}
	d.held.files[b.Num] = held
	return held
}

// all returns all files that are held.
func (h *heldBlobs) all() []*heldBlob {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return slices.Collect(maps.Values(h.files))
}

// get returns a file by its number; nil if none of that number is held.
func (h *heldBlobs) get(num uint64) *heldBlob {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.files[num]
}

// Release implements memtable.Held.
func (b *heldBlob) Release() {
	h := &b.d.held
	h.mu.Lock()
	b.holders--
	last := b.holders == 0
	if last {
		delete(h.files, b.Num)
	}
	remove := b.unneeded
	h.mu.Unlock()
	if last {
		b.d.cleaner.Blob(b.Blob, remove)
	}
}

// heldBy returns the blob files that memtables hold.
func heldBy(mems []*memTable) (held []*heldBlob) {
	for _, m := range mems {
		if !m.HoldsAny() {
			continue
		}
		for _, h := range m.Held() {
			if b, ok := h.(*heldBlob); ok {
				held = append(held, b)
			}
		}
	}
	return held
}

// listHeld lists in an edit the blob files of memtables that its tables refer to. It returns the others.
func listHeld(e *manifest.Edit, mems []*memTable) (unneeded []*heldBlob) {
	held := heldBy(mems)
	if len(held) == 0 {
		return nil
	}
	listed := map[uint64]bool{}
	for i := range e.Added {
		for _, r := range e.Added[i].Table.Blobs {
			listed[r.Num] = false
		}
	}
	for _, b := range held {
		done, referred := listed[b.Num]
		switch {
		case !referred:
			unneeded = append(unneeded, b)
		case !done:
			e.AddedBlobs = append(e.AddedBlobs, b.BlobFile)
			listed[b.Num] = true
		}
	}
	return unneeded
}

// settleHeld is called when the tables of d.current have the contents of memtables. The files of d.current stay as
// long as the memtables are read, whatever versions come after. Those that no table refers to are removed then. The
// caller holds d.mu.
func (d *DB) settleHeld(mems []*memTable, unneeded []*heldBlob) {
	for _, m := range mems {
		if m.HoldsAny() {
			d.current.Ref()
			m.Hold(heldVersion{d, d.current}, 0)
		}
	}
	d.held.mu.Lock()
	defer d.held.mu.Unlock()
	for _, b := range unneeded {
		b.unneeded = true
	}
}

// A heldVersion is a version that a memtable holds.
type heldVersion struct {
	d *DB
	v *version.Version
}

// Release implements memtable.Held.
func (h heldVersion) Release() { h.d.unrefVersion(h.v) }

// blobID returns the id of a blob file that entries of memtables or of a version's tables refer to; 0 if there is
// none of that number.
func (d *DB) blobID(v *version.Version, num uint64) uint64 {
	if id := v.BlobID(num); id != 0 {
		return id
	}
	if b := d.held.get(num); b != nil {
		return b.ID
	}
	return 0
}

// findHeld returns, for one more memtable to hold, the blob file that a log's handle refers to. The record is there,
// and is the key's; whether its value is whole shows when it is read.
func (d *DB) findHeld(key []byte, h blob.Handle) (*heldBlob, error) {
	f := manifest.BlobFile{Num: h.File}
	if b := d.held.get(h.File); b != nil {
		f = b.BlobFile
	} else {
		info, err := d.readBlobInfo(h.File)
		if err != nil {
			return nil, err
		}
		f.ID, f.Size, f.Records, f.ValueBytes = info.ID, info.Size, info.Records, info.ValueBytes
	}
	b := d.holdBlob(f)
	r, err := b.Open(&d.blobs)
	if err == nil {
		_, err = r.OpenStream(key, h)
	}
	if err != nil {
		b.Release()
		return nil, err
	}
	return b, nil
}

// checkHeld returns an error if a log that was replayed has handles of a blob file of the version. The flush that
// lists a file is the end of its log.
func (d *DB) checkHeld(v *version.Version) error {
	for _, b := range d.held.all() {
		if v.Blob(b.Num) != nil {
			return &CorruptionError{File: d.blobPath(b.Num), Offset: -1, Hint: d.hint(),
				What: "a log has handles of its values, which the manifest says are in tables"}
		}
	}
	return nil
}

// readBlobInfo returns what a blob file says of itself.
func (d *DB) readBlobInfo(num uint64) (info blob.Info, err error) {
	name := d.blobPath(num)
	f, err := d.openFile(name)
	if err != nil {
		return info, err
	}
	defer func() { _ = f.Close() }() // it was only read
	size, err := f.Size()
	if err == nil {
		info, err = blob.ReadInfo(f, size, name)
	}
	if err == nil && info.Records == 0 {
		err = &base.CorruptionError{File: name, Offset: -1, What: "a log has handles of its values, and it has none"}
	}
	return info, err
}
