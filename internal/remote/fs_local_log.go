package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sequence"
)

// examineLogs returns an error if w's directory lacks logs that the newest list of files needs, or has logs that a
// later writer abandoned, unless AbandonLog is set. It runs before w puts its fence, so that it does not stop a writer
// that has the logs. The view may be an earlier one, or nil; the verdict is of the returned one.
//
// It sends no extra requests: it sends those of the fence earlier.
func (w *fsWriter) examineLogs(v *sequence.TailView) (*sequence.TailView, error) {
	for earlier := v != nil; ; earlier = false {
		home, err := w.newestHome(&v)
		if err == nil {
			_, err = w.findLogs(home, w.f.logStore())
		}
		refused := errors.Is(err, ErrLogElsewhere) || errors.Is(err, ErrLogAbandoned)
		if !refused || !earlier {
			return v, err
		}
		v = nil // it may have been before the directory could be locked
	}
}

// newestHome returns where the logs are, by the newest list of files in a view; there is a new view if need be.
func (w *fsWriter) newestHome(v **sequence.TailView) (home logHome, err error) {
	f := w.f
	err = f.seq.Retry(func() (err error) {
		if *v == nil {
			if *v, err = f.seq.Tail(f.ctx); err != nil {
				return err
			}
		}
		if home, err = readHome(f.ctx, f.seq, *v); sequence.IsMissing(err) {
			*v = nil
		}
		return err
	})
	if sequence.IsMissing(err) {
		err = sequence.AsCorruption(err)
	}
	return home, err
}

// readHome returns where the logs are, by the newest list of files in a view.
func readHome(ctx context.Context, s *sequence.Sequence, v *sequence.TailView) (home logHome, err error) {
	if v.Data == 0 {
		return home, nil
	}
	b, err := readBody(ctx, s, v, v.Data)
	if err == nil && b.list == nil && b.edit == nil && b.lists > 0 {
		b, err = readBody(ctx, s, v, b.lists)
	}
	switch {
	case err != nil:
		return home, err
	case b.edit != nil:
		e, err := decodeEdit(s, b)
		return e.list.home, err
	case b.list != nil:
		list, err := decodeList(s, b)
		if err != nil {
			return home, err
		}
		return list.home, nil
	}
	return home, nil // reading the rest tells what is wrong
}

// findLogs returns what w's directory has of the logs that a list of files of a store needs, and an error unless these
// are there or the caller gives them up. The store is 0 if there is no list yet.
func (w *fsWriter) findLogs(home logHome, store uint64) (logVerdict, error) {
	f := w.f
	foreign, err := w.local.isForeign(store)
	if err != nil {
		return logVerdict{}, err
	}
	if foreign && f.o.LocalLog {
		return logVerdict{}, fmt.Errorf("%w: %s has the log of another store; give this one another directory",
			base.ErrForeignDirectory, f.o.LogDir)
	}
	if foreign {
		if err := w.local.close(false, f.o.Log); err != nil {
			return logVerdict{}, err
		}
		w.local = nil
	}
	v, err := w.local.judge(home, store)
	if err == nil && !f.o.AbandonLog {
		err = w.local.refusal(v, home)
	}
	return v, err
}

// takeLogs makes the logs in w's directory those of the store if the newest list of files names that directory, and
// otherwise renames or removes them. The home file has w's epoch afterwards.
func (w *fsWriter) takeLogs() error {
	f := w.f
	home, store := f.list.home, f.logStore()
	w.ended = home.ended
	if f.list.current == "" {
		store = 0 // that number was drawn just now
	}
	v, err := w.findLogs(home, store)
	if err != nil {
		return err
	}
	if v.lost {
		f.abandoned = append(f.abandoned, AbandonedLog{File: home.place, Reason: fmt.Sprintf("the log of the writer "+
			"with epoch %d is not here, and was given up (Objects.AbandonLog): writes since its last flush are not in "+
			"the store, and can never come back", home.epoch)})
	}
	if v.here {
		w.missing = slices.DeleteFunc(slices.Clone(home.logs), w.local.has)
		if err := f.dropMarkers(); err != nil {
			return err
		}
	}
	if w.local == nil {
		return nil
	}
	if len(v.stale) > 0 {
		kept, err := w.local.setAside(v.stale)
		f.abandoned = append(f.abandoned, kept...)
		if err != nil {
			return err
		}
	}
	return w.local.settle(v.here, f.o.LocalLog, f.logStore(), w.author.epoch)
}

// dropMarkers removes the empty files that stand for logs whose bytes are elsewhere, so that a missing log shows.
func (f *FS) dropMarkers() error {
	names, err := f.small.List(f.o.Root)
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

// logHome is what the next list of files says of the logs.
func (w *fsWriter) logHome() (home logHome, err error) {
	home.epoch, home.ended = w.author.epoch, w.ended
	switch {
	case w.f.o.LocalLog && !w.released.Load():
		home.id, home.place = w.local.home.id, w.f.o.Place
		home.logs, err = w.local.withRecords()
	case w.local != nil && w.local.home.id != 0:
		home.end(endedLog{w.local.home.id, w.author.epoch})
	}
	return home, err
}

// ReleaseLog says that all writes are in sorted files. The next published list of files needs no log, so any machine
// can open the store. No log can be created any more.
func (f *FS) ReleaseLog() {
	if w := f.asWriter(); w != nil {
		w.released.Store(true)
	}
}

// MissingLogs returns the paths of logs with numbers of at least oldest that had records when the newest list of files
// was published, and are not in the log directory.
func (f *FS) MissingLogs(oldest uint64) (names []string) {
	if w := f.asWriter(); w != nil {
		for _, num := range w.missing {
			if num >= oldest {
				names = append(names, w.local.logPath(num))
			}
		}
	}
	return names
}

// AbandonedLogs returns the logs that were abandoned when the store was taken over.
func (f *FS) AbandonedLogs() []AbandonedLog { return f.abandoned }

// localLog returns the directory of a log that is there; nil if it is elsewhere.
func (f *FS) localLog(num uint64) *localLog {
	if w := f.asWriter(); w != nil && w.local.has(num) {
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
	return f.seq.Store() ^ f.site.number()
}
