package locallog

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/sequence"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A Verdict is what the newest list of files makes of a directory of logs.
type Verdict struct {
	Here  bool     // the logs that the list needs are those in the directory
	Lost  bool     // they are in another
	stale []uint64 // those in the directory that have records, and were abandoned
}

// Verify compares the directory with the newest list of files of a store. It returns an error unless the logs that the
// list needs are there, and no others have records; or abandon is set, and the caller gives up those that are
// elsewhere.
func (d *Dir) Verify(list Location, store uint64, abandon bool) (v Verdict, err error) {
	own := d != nil && d.identity.id != 0 && d.identity.store == store
	v.Here = own && list.ID == d.identity.id && d.identity.epoch >= list.Epoch
	v.Lost = list.ID != 0 && !v.Here
	ended := own && (list.ID == 0 && d.identity.epoch >= list.Epoch ||
		slices.Contains(list.Ended, EndedLog{d.identity.id, d.identity.epoch}))
	if d != nil && !v.Here && !ended {
		if v.stale, err = d.withRecords(); err != nil {
			return v, err
		}
	}
	if abandon {
		return v, nil
	}
	return v, d.refusal(v, list)
}

// IsForeign reports whether the directory has the log of another store. If store is 0, a directory without records does
// not count: its store was never completed.
func (d *Dir) IsForeign(store uint64) (bool, error) {
	if d == nil || d.identity.id == 0 || d.identity.store == store {
		return false, nil
	}
	logs, err := d.withRecords()
	return store != 0 || len(logs) > 0, err
}

// refusal is the error that a verdict means unless AbandonLog is set; nil if none.
func (d *Dir) refusal(v Verdict, list Location) error {
	var err error
	if v.Lost {
		e := &LocationError{Err: ErrElsewhere, Place: list.Place, What: "no directory was given"}
		if d != nil {
			e.Dir, e.Cause, e.What = d.dir, d.bad, d.dir+" has no log of it"
			if d.identity.id == list.ID {
				e.What = fmt.Sprintf("%s is an older copy of it, of epoch %d, where the store is at %d", d.dir,
					d.identity.epoch, list.Epoch)
			}
		}
		err = e
	}
	if len(v.stale) == 0 {
		return err
	}
	e := &LocationError{Err: ErrAbandoned, Dir: d.dir, Place: list.Place, Cause: d.bad,
		What: "and nothing says whose they are"}
	if d.identity.id != 0 {
		e.What = fmt.Sprintf("of epoch %d, where the store is at %d", d.identity.epoch, list.Epoch)
	}
	for _, num := range v.stale {
		e.Logs = append(e.Logs, manifest.FileName(manifest.FileWAL, num))
	}
	return errors.Join(err, e)
}

// Commit assigns the directory to the writer with an epoch, with its logs if they are here. It renames stale logs,
// which it returns, and removes all other logs. If the writer keeps no logs here, and there are none, it leaves. The
// change is durable on return.
func (d *Dir) Commit(v Verdict, keep bool, store, epoch uint64) (kept []objectdir.LostLog, err error) {
	if kept, err = d.archive(v.stale); err != nil {
		return kept, err
	}
	next := identity{id: d.identity.id, store: store, epoch: epoch}
	if !v.Here {
		if err := d.clear(); err != nil {
			return kept, err
		}
		next.id = sequence.RandomID()
	}
	if !v.Here && !keep {
		return kept, d.leave()
	}
	if err := vfs.ReplaceFile(d.fs, d.path(identityName), next.encode()); err != nil {
		return kept, err
	}
	d.identity, d.bad = next, nil
	return kept, nil
}

// archive renames stale logs to names that are not those of logs, and returns them.
func (d *Dir) archive(stale []uint64) (kept []objectdir.LostLog, err error) {
	if len(stale) == 0 {
		return nil, nil
	}
	for _, num := range stale {
		name := d.LogPath(num)
		aside := fmt.Sprintf("%s.epoch-%d", name, d.identity.epoch)
		for n := 2; ; n++ {
			if _, err := d.fs.Stat(aside); errors.Is(err, fs.ErrNotExist) {
				break
			} else if err != nil {
				return kept, err
			}
			aside = fmt.Sprintf("%s.epoch-%d-%d", name, d.identity.epoch, n)
		}
		size, err := d.fs.Stat(name)
		if err == nil {
			err = d.fs.Rename(name, aside)
		}
		if err != nil {
			return kept, err
		}
		d.forget(num)
		kept = append(kept, objectdir.LostLog{File: aside, Bytes: size,
			Reason: "a later writer of the store has given this log up (Objects.AbandonLog)"})
	}
	return kept, d.Sync()
}

// clear removes all logs that are left: they are not needed, or have no records.
func (d *Dir) clear() error {
	for _, num := range d.Numbers() {
		if err := d.Remove(num); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return d.Sync()
}

// Location returns what the next list of files says of the logs: they are here as long as the writer keeps them here.
// Else logs that were here are not needed any more, in addition to those that have ended before.
func (d *Dir) Location(keep bool, epoch uint64, ended []EndedLog) (at Location, err error) {
	at.Epoch, at.Ended = epoch, ended
	switch {
	case keep:
		at.ID, at.Place = d.identity.id, PlaceOf(d.dir)
		at.Logs, err = d.withRecords()
	case d != nil && d.identity.id != 0:
		at.end(EndedLog{d.identity.id, epoch})
	}
	return at, err
}
