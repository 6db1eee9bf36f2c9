package replay

import (
	"errors"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// A Follower reads the manifest and the logs of a store that another process writes. Each call goes on where the last
// one ended. After Restart all is read again. It is not safe for concurrent use.
type Follower struct {
	FS  vfs.FS
	Dir string

	State   *version.ManifestState // what the manifest says, as far as it was read; set by Restart
	Mems    []*memtable.Memtable   // oldest first: writes that are in no table of State
	LastSeq base.SeqNum            // of the last write that was read; the caller adds those of tables

	tail *manifest.Tail
	logs manifest.LogTail
}

// Position returns how far in the store's history the manifest was read. It is zero before the first ReadManifest.
func (f *Follower) Position() manifest.Position {
	if f.tail == nil {
		return manifest.Position{}
	}
	return f.tail.Position()
}

// ReadManifest applies to State what is new in the manifest with this number. Before another manifest is read, the
// caller calls Restart.
func (f *Follower) ReadManifest(num uint64) (err error) {
	if f.tail == nil {
		if f.tail, err = manifest.OpenTail(f.FS, f.Dir, num); err != nil {
			return err
		}
	}
	return f.tail.Read(f.State.Apply)
}

// Restart forgets what was read, and closes the files. The memtables are dropped, except for readers that have them.
func (f *Follower) Restart() error {
	var err error
	if f.tail != nil {
		err = f.tail.Close()
	}
	err = errors.Join(err, f.logs.Close())
	for _, m := range f.Mems {
		m.Drop()
	}
	f.tail, f.State, f.Mems, f.LastSeq = nil, version.NewManifestState(), nil, 0
	return err
}

// ReadLogs reads on in the logs whose writes are not in tables, into Mems, each with a copy of p. It ends with the logs
// that were there when it was called, though a writer may go on. It reports whether the logs are ahead of the manifest
// that was read. Then writes are missing between two, or are of a kind that the manifest does not name. An error of
// interrupted, which is called every few records, ends it.
func (f *Follower) ReadLogs(p *Replayer, interrupted func() error) (ahead bool, err error) {
	first := f.State.LogNum
	f.Mems = slices.DeleteFunc(f.Mems, func(m *memtable.Memtable) bool {
		if m.Log < first {
			m.Drop() // it may not have come into a view
		}
		return m.Log < first
	})
	f.logs.FS, f.logs.Dir = f.FS, f.Dir
	into := *p
	into.Mems, into.LastSeq = f.Mems, f.LastSeq
	defer into.Close()
	err = f.logs.Read(first, func(num uint64, r *wal.Reader, record []byte) error {
		if record == nil {
			return nil
		}
		into.Log = num
		err := into.Record(r, manifest.Path(f.Dir, manifest.FileWAL, num), record)
		f.Mems, f.LastSeq = into.Mems, into.LastSeq // of all that was read, whatever ends it
		if err != nil && into.MayEndAt(r, num, err) {
			return manifest.ErrLogEnds
		}
		return err
	}, interrupted)
	return into.Gap || into.Used&^f.State.Features != 0, err
}
