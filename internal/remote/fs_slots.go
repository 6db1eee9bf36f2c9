package remote

import (
	"errors"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/vfs"
)

// changeSlots changes files of slots, in memory.
func (w *fsWriter) changeSlots(change func() error) error {
	w.slots.Lock()
	defer w.slots.Unlock()
	err := change()
	w.slotsChanged = w.slotsChanged || err == nil
	return err
}

// publishSlots publishes a list of files if files of slots have changed since the last one. It is one request, or none.
func (w *fsWriter) publishSlots() error {
	w.slots.Lock()
	defer w.slots.Unlock()
	if !w.slotsChanged {
		return nil
	}
	err := w.publish(filepath.Join(objectdir.Root, manifest.CurrentName))
	w.slotsChanged = err != nil
	return err
}

// An ownLog is a log of this writer, which can read it while KeepLogs says so. What it has written is in memory then,
// until the log is removed.
type ownLog struct {
	vfs.WriteFile
	w      *fsWriter
	num    uint64
	marker vfs.WriteFile // the file in memory; empty unless the log is read
	size   int           // bytes in it
}

// maxLogHead is how many bytes of a log are in memory anyway. A log that has no record yet, but its header, can thus be
// read as a whole from the first one on.
const maxLogHead = 64

func (l *ownLog) Write(p []byte) (int, error) {
	n, err := l.WriteFile.Write(p)
	if err != nil || l.w.isPartial(l.num) {
		return n, err
	}
	keep := l.w.f.o.KeepLogs
	if l.size += n; l.size > maxLogHead && (keep == nil || !keep()) {
		l.w.partial.Store(l.num, true)
		return n, nil
	}
	return l.marker.Write(p)
}

// Close implements vfs.WriteFile.
func (l *ownLog) Close() error { return errors.Join(l.WriteFile.Close(), l.marker.Close()) }

// isPartial reports whether a log is not in memory as a whole.
func (w *fsWriter) isPartial(log uint64) bool {
	_, partial := w.partial.Load(log)
	return partial
}
