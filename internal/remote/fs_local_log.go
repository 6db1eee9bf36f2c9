package remote

import (
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/remote/locallog"
	"github.com/siftkv/siftkv/internal/sequence"
)

// examineLogs returns an error if w's directory lacks logs that the newest list of files needs, or has logs that a
// later writer abandoned, unless AbandonLog is set. It runs before w puts its fence, so that it does not stop a writer
// that has the logs. The view may be an earlier one, or nil; the verdict is of the returned one.
//
// It sends no extra requests: it sends those of the fence earlier.
func (w *fsWriter) examineLogs(v *sequence.TailView) (*sequence.TailView, error) {
	for earlier := v != nil; ; earlier = false {
		at, err := w.newestLocation(&v)
		if err == nil {
			_, err = w.findLogs(at, w.f.logStore())
		}
		refused := errors.Is(err, locallog.ErrElsewhere) || errors.Is(err, locallog.ErrAbandoned)
		if !refused || !earlier {
			return v, err
		}
		v = nil // it may have been before the directory could be locked
	}
}

// newestLocation returns where the logs are, by the newest list of files in a view; there is a new view if need be.
func (w *fsWriter) newestLocation(v **sequence.TailView) (at locallog.Location, err error) {
	f := w.f
	err = f.seq.Retry(func() (err error) {
		if *v == nil {
			if *v, err = f.seq.Tail(f.ctx); err != nil {
				return err
			}
		}
		if at, err = filelist.ReadLocation(f.ctx, f.seq, *v); sequence.IsMissing(err) {
			*v = nil
		}
		return err
	})
	if sequence.IsMissing(err) {
		err = sequence.AsCorruption(err)
	}
	return at, err
}

// findLogs returns what w's directory has of the logs that a list of files of a store needs, and an error unless these
// are there or the caller gives them up. The store is 0 if there is no list yet.
func (w *fsWriter) findLogs(at locallog.Location, store uint64) (locallog.Verdict, error) {
	f := w.f
	foreign, err := w.local.IsForeign(store)
	if err != nil {
		return locallog.Verdict{}, err
	}
	if foreign && f.o.LocalLog {
		return locallog.Verdict{}, fmt.Errorf("%w: %s has the log of another store; give this one another directory",
			base.ErrForeignDirectory, f.o.Dir)
	}
	if foreign {
		if err := w.local.Close(false, f.o.Log); err != nil {
			return locallog.Verdict{}, err
		}
		w.local = nil
	}
	return w.local.Verify(at, store, f.o.AbandonLog)
}

// takeLogs makes the logs in w's directory those of the store if the newest list of files names that directory, and
// otherwise renames or removes them. The directory has w's epoch afterwards.
func (w *fsWriter) takeLogs() error {
	f := w.f
	at, store := f.list.Location, f.logStore()
	w.ended = at.Ended
	if f.list.Current == "" {
		store = 0 // that number was drawn just now
	}
	v, err := w.findLogs(at, store)
	if err != nil {
		return err
	}
	if v.Lost {
		reason := fmt.Sprintf("the log of the writer with epoch %d is not here, and was given up "+
			"(Objects.AbandonLog): writes since its last flush are not in the store, and can never come back", at.Epoch)
		f.lostLogs = append(f.lostLogs, objectdir.LostLog{File: at.Place, Reason: reason, Abandoned: true})
	}
	if v.Here {
		for _, num := range at.Logs {
			if !w.local.Has(num) {
				f.lostLogs = append(f.lostLogs, objectdir.LostLog{Num: num, File: w.local.LogPath(num),
					Reason: "the log is missing, and the store's list of files has it"})
			}
		}
		if err := f.dropMarkers(); err != nil {
			return err
		}
	}
	if w.local == nil {
		return nil
	}
	kept, err := w.local.Commit(v, f.o.LocalLog, f.logStore(), w.author.Epoch)
	f.lostLogs = append(f.lostLogs, kept...)
	return err
}

// dropMarkers removes the empty files that stand for logs whose bytes are elsewhere, so that a missing log shows.
func (f *FS) dropMarkers() error {
	names, err := f.small.List(objectdir.Root)
	if err != nil {
		return err
	}
	for _, name := range names {
		kind, _ := manifest.ParseFileName(name)
		if g := f.growing[name]; kind == manifest.FileWAL && (g == nil || g.size == 0) {
			delete(f.growing, name)
			if err := f.small.Remove(f.join(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// LostLogs returns the logs that were abandoned when the store was taken over, and those that had records when the
// newest list of files was published, and are not in the log directory.
func (f *FS) LostLogs() []objectdir.LostLog { return f.lostLogs }

// localLog returns the directory of a log that is there; nil if it is elsewhere.
func (f *FS) localLog(num uint64) *locallog.Dir {
	if w := f.asWriter(); w != nil && w.local.Has(num) {
		return w.local
	}
	return nil
}

// logStore returns the number that identifies a log directory of this branch: the store's XOR the branch's; 0 if the
// store is not known yet.
func (f *FS) logStore() uint64 {
	if f.seq.Store() == 0 {
		return 0
	}
	return f.seq.Store() ^ f.prefix.Number()
}
