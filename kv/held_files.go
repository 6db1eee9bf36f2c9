package kv

import (
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/manifest"
)

// heldFiles are obsolete files that a reader in another process may still need.
// A file is given back when every reader has gone on to a position of the store's
// history at which the file was obsolete already.
//
// A reader that registers too late to be seen here registers before it reads
// CURRENT. What is handed in was given up by an edit that is in the manifest, so
// that such a reader does not come upon it.
type heldFiles struct {
	files []heldFile // touched by the cleaner alone
	count atomic.Int64
}

type heldFile struct {
	name string
	at   manifest.Position // the file was obsolete here
}

// heldRecheck is how often a store asks whether readers still need files, when
// nothing else leads it to ask.
const heldRecheck = 10 * time.Second

// removable takes in obsolete files, and returns those that nobody needs.
func (h *heldFiles) removable(d *DB, files []string) (free []string) {
	at := d.position()
	for _, f := range files {
		h.files = append(h.files, heldFile{f, at})
	}
	if len(h.files) == 0 {
		return nil
	}
	n, oldest, err := manifest.Readers(d.fs, d.dir)
	if err != nil {
		d.log.Warn("obsolete files stay: whether readers need them is not known", "dir", d.dir, "error", err)
		return nil
	}
	held := h.files[:0]
	for _, f := range h.files {
		if n > 0 && oldest.Before(f.at) {
			held = append(held, f)
		} else {
			free = append(free, f.name)
		}
	}
	clear(h.files[len(held):])
	h.files = held
	h.count.Store(int64(len(held)))
	return free
}

// position returns where the store is in its history.
func (d *DB) position() manifest.Position {
	d.manifestMu.Lock()
	defer d.manifestMu.Unlock()
	if d.manifest == nil {
		return manifest.Position{}
	}
	return d.manifest.Position()
}
