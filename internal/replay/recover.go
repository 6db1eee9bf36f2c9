package replay

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
)

// A Recovery reads what a store was when it was last written: the manifest lists its tables, and the logs have the
// writes that are in no table yet. It changes nothing on the disk.
type Recovery struct {
	Replayer
	NextFile *atomic.Uint64     // becomes larger than the number of each file that is there
	Missing  map[uint64]Dropped // logs that should be there and are not, by their numbers

	Manifest uint64                 // number of the manifest
	State    *version.ManifestState // what it says
	Version  *version.Version       // that it describes; nil: it could not be read
	Replayed []uint64               // the numbers of the logs that follow it, set by ReplayLogs
}

// ReadManifest reads the manifest in force. The version is the caller's.
func (r *Recovery) ReadManifest() (err error) {
	if r.Manifest, err = manifest.Current(r.FS, r.Dir); err != nil {
		return base.WithHint(err, r.Hint)
	}
	r.State = version.NewManifestState()
	if err := manifest.Load(r.FS, r.Dir, r.Manifest, r.State.Apply); err != nil {
		return base.WithHint(err, r.Hint)
	}
	if r.Version, err = r.State.Version(&version.Version{}); err != nil {
		return &base.CorruptionError{File: manifest.Path(r.Dir, manifest.FileManifest, r.Manifest), Offset: -1,
			What: "the levels are not in order", Cause: err, Hint: r.Hint}
	}
	r.claim(r.State.NextFile)
	return nil
}

// claim makes sure that new files have numbers of at least next.
func (r *Recovery) claim(next uint64) { r.NextFile.Store(max(r.NextFile.Load(), next)) }

// ReplayLogs replays the logs that follow the manifest, and refuses a history with a hole. The memtables are the
// caller's, also after an error.
func (r *Recovery) ReplayLogs() error {
	names, err := r.FS.List(r.Dir)
	for _, num := range slices.Sorted(maps.Keys(r.Missing)) {
		if err == nil && num >= r.State.LogNum {
			err = r.Lost(r.Missing[num])
		}
	}
	if err != nil {
		return err
	}
	r.claim(r.Manifest + 1)
	for _, name := range names {
		_, num := manifest.ParseFileName(name)
		r.claim(num + 1)
	}
	logs := manifest.Numbers(names, manifest.FileWAL, r.State.LogNum)
	if err := r.checkFirst(logs); err != nil {
		return err
	}
	r.LastSeq, r.Replayed = r.Version.LastSeq, logs
	return r.Logs(logs, r.State.Closed)
}

// checkFirst makes sure that the log is there at which recovery begins. A manifest's second edit comes when its log has
// been made. A checkpoint and a restored store, which need none, give the manifest's own number.
func (r *Recovery) checkFirst(logs []uint64) error {
	what, first := "the log is missing", r.State.LogNum
	switch {
	case first == 0 || len(logs) > 0 && logs[0] == first:
		return nil
	case len(logs) > 0:
		// Later logs alone would make a history with a hole.
		what += ", although " + manifest.FileName(manifest.FileWAL, logs[0]) + ", which came later, is there"
	case r.State.Edits == 1 || first == r.Manifest:
		return nil
	}
	return r.Lost(Dropped{File: manifest.Path(r.Dir, manifest.FileWAL, first), Reason: what})
}

// CheckClosed makes sure that a store has all its writes if the manifest with this number says that it was closed
// cleanly at write closed.
func (p *Replayer) CheckClosed(num uint64, closed base.SeqNum) error {
	if p.LastSeq >= closed {
		return nil
	}
	return p.Lost(Dropped{File: manifest.Path(p.Dir, manifest.FileManifest, num),
		Reason: fmt.Sprintf("the store was closed cleanly with writes up to number %d, and has those up to %d: "+
			"a log was cut off or is missing", closed, p.LastSeq)})
}

// Lost returns an error for lost writes whose loss no crash explains. In SkipCorrupt it reports them instead.
func (p *Replayer) Lost(l Dropped) error {
	if p.Mode != SkipCorrupt {
		return &base.CorruptionError{File: l.File, Offset: -1, What: l.Reason, Hint: p.Hint}
	}
	p.Dropped(l)
	return nil
}
