package branch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/sequence"
	"github.com/siftkv/siftkv/objstore"
)

// Writers that live for less than the grace leave behind what they replaced. The times of entries in the object store
// show it. All readers have had time to notice a list of files that was published a grace ago. If that list omits a
// file of an earlier epoch, so do all later lists: each has files of the one before and files of its own writer. So any
// process may delete that file, at any time, next to any writer, if no checkpoint names it.

// Collected is what a collection has deleted.
type Collected struct {
	Files   int   // sorted files and blob files
	Bytes   int64 // of them
	Entries int   // of the sequence
	Failed  int   // files that could not be deleted
}

// A noticedList is a list of files that all readers have had time to notice.
type noticedList struct {
	*filelist.State
	epoch  uint64    // of its writer
	before time.Time // when it was there, by the store's clock
}

// noticed returns the newest list of files that was published a grace before now, by the store's clock; nil: there is
// none, or a writer is deleting it. If now is zero, it is the time of the newest entry. It is a LIST of the entries
// since then, a GET, and what filelist.ReadList needs.
func noticed(ctx context.Context, s *sequence.Sequence, now time.Time, grace time.Duration) (*noticedList, error) {
	v, before, err := s.TailBefore(ctx, now, grace)
	if err != nil || v.Data == 0 {
		return nil, err
	}
	newest, err := filelist.ReadBody(ctx, s, v, v.Data)
	if err == nil && newest.ListSlot == 0 {
		return nil, nil
	}
	var st *filelist.State
	if err == nil {
		st, err = filelist.ReadList(ctx, s, v, newest, filelist.Known{})
	}
	var writer sequence.Entry
	if err == nil {
		writer, err = s.Data(ctx, v, st.Slot) // ReadList has read it
	}
	if sequence.IsMissing(err) {
		return nil, nil
	}
	return &noticedList{st, writer.Epoch, before}, err
}

// Orphans returns the files of a branch that writers of earlier epochs have put, and that no list has: listed returns
// the file of a number that one has. It is a LIST for a thousand files.
func Orphans(ctx context.Context, store objstore.Store, at filelist.BranchPrefix, epoch uint64,
	listed func(num uint64) filelist.File) (found []filelist.NumberedFile, err error) {
	for o, err := range store.List(ctx, at.Files(), "") {
		if err != nil {
			return nil, fmt.Errorf("siftkv: list %s: %w", at.Files(), err)
		}
		num, f, ok := at.ParseFile(o.Key)
		if !ok || f.Epoch >= epoch {
			continue
		}
		was := listed(num)
		if f.Size = was.Size; f != was {
			f.Size = o.Size
			found = append(found, filelist.NumberedFile{File: f, Num: num})
		}
	}
	return found, nil
}

// Collect deletes what earlier writers of a branch have left behind: sorted files and blob files, except
// those that a checkpoint names, and entries. The caller owns the pins. See noticed for now. It is what noticed needs
// and a LIST of the files; if there are any to delete, a LIST of the checkpoints, and a DELETE for each; and a Trim.
func (p *Retained) Collect(ctx context.Context, s *sequence.Sequence, now time.Time, grace time.Duration,
	remove func(ctx context.Context, key string) error) (c Collected, err error) {
	n, err := noticed(ctx, s, now, grace)
	if n == nil || err != nil {
		return c, err
	}
	due, err := Orphans(ctx, p.f.store, p.prefix, n.epoch, func(num uint64) filelist.File { return n.List.Files[num] })
	if err == nil && len(due) > 0 {
		err = p.Update(ctx)
	}
	if err != nil {
		return c, err
	}
	var all sync.WaitGroup
	var files, bytes, failed atomic.Int64
	errs, turn := make([]error, len(due)), make(chan struct{}, maxDeletes)
	for i, t := range due {
		if p.Has(t.Num) {
			continue
		}
		turn <- struct{}{}
		all.Go(func() {
			defer func() { <-turn }()
			if errs[i] = remove(ctx, t.Key(t.Num)); errs[i] != nil {
				failed.Add(1)
				return
			}
			files.Add(1)
			bytes.Add(t.Size)
		})
	}
	all.Wait()
	c = Collected{Files: int(files.Load()), Bytes: bytes.Load(), Failed: int(failed.Load())}
	if ctx.Err() == nil {
		var trimmed error
		c.Entries, trimmed = s.Trim(ctx, min(n.Slot, n.List.LogStart), n.Slot, n.before.Add(1), n.Chain...)
		errs = append(errs, trimmed)
	}
	return c, errors.Join(errs...)
}

// maxDeletes is how many files are deleted side by side.
const maxDeletes = 16

// Collect deletes what the writers of a branch have left behind and no reader needs after the grace, next to any
// writer. It is what Retained.Collect needs, and a PUT, a LIST and a DELETE to learn the store's time.
func Collect(ctx context.Context, o Options) (Collected, error) {
	f := NewSet(o)
	at, store, err := f.Locate(ctx, o.Branch)
	if err != nil {
		return Collected{}, err
	}
	now, err := f.time(ctx)
	if err != nil {
		return Collected{}, err
	}
	return NewRetained(f, at).Collect(ctx, f.Sequence(at, store), now, o.Grace, f.remove)
}

// time returns the time by the store's clock.
func (f *Set) time(ctx context.Context) (now time.Time, err error) {
	key := fmt.Sprintf("check/time-%016x", sequence.RandomID())
	if err := f.put(ctx, key, nil); err != nil {
		return now, err
	}
	for o, err := range f.store.List(ctx, key, "") {
		if err != nil {
			return now, errors.Join(err, f.remove(ctx, key))
		}
		now = o.ModTime
	}
	if now.IsZero() {
		err = fmt.Errorf("siftkv: %s was put, and a listing does not have it", key)
	}
	return now, errors.Join(err, f.remove(ctx, key))
}
