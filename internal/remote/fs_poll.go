package remote

import (
	"context"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/sequence"
)

// A poll lists the end instead of reading the next slot if pollsPerList polls in a row have found nothing, or the last
// poll is longAgo. Then the next slot may have been deleted, with newer data after it.
const (
	pollsPerList = 64
	longAgo      = time.Minute
)

// few is how many entries a poll reads one after the other before it lists the rest.
const few = 4

// A mark is how far a reader has read.
type mark struct {
	filelist.Known
	epoch uint64    // of the last data, or of one before
	fresh bool      // no refresh since the first reading
	polls int       // in a row that found nothing
	last  time.Time // of a poll
}

// load reads what there is, unless that was done: see Tail and filelist.Read for the requests. If there is no store,
// the next call looks again. A writer's files are its own.
func (f *FS) load() error {
	if f.at.Next > 0 || f.asWriter() != nil {
		return nil
	}
	if err := f.small.MkdirAll(objectdir.Root); err != nil {
		return err
	}
	ctx, cancel := f.asked()
	defer cancel()
	if err := f.locate(ctx); err != nil {
		return err
	}
	if f.o.Checkpoint != "" {
		return f.loadCheckpoint(ctx)
	}
	if _, err := f.jump(ctx); err != nil {
		return err
	}
	if f.at.Next == 0 {
		return f.checkBegun()
	}
	f.at.fresh, f.at.last = f.at.Next > 0, f.now()
	return nil
}

// refresh reads what is new, for a reader: one request for the next slot, and one more for each entry that is new. If
// there are more than a few, it is a LIST, and what its end needs, side by side. One refresh of 64 that find nothing,
// and one a minute (or the grace, if that is less) after the one before, is a LIST in place of the request for the next
// slot. A refresh that takes that long is a LIST more: its first answer misses later changes.
func (f *FS) refresh() error {
	f.refreshing.Lock()
	defer f.refreshing.Unlock()
	if err := f.load(); err != nil || f.at.Next == 0 || f.asWriter() != nil {
		return err
	}
	if f.at.fresh {
		f.at.fresh = false
		return nil
	}
	ctx, cancel := f.asked()
	defer cancel()
	now, found, err := f.now(), 0, error(nil)
	since, bound := f.at.last, min(f.o.Grace, longAgo)
	if f.lost.Swap(false) || f.at.polls >= pollsPerList-1 || now.Sub(since) >= bound {
		newer, err := f.jump(ctx)
		f.at.polls, since = 0, now
		if err != nil || !newer {
			f.polled(now, 0, err)
			return err
		}
	}
	for more := true; err == nil && more && found < 2*few; {
		if found == few {
			_, err = f.jump(ctx)
		}
		if err == nil {
			more, err = f.step(ctx)
		}
		if more {
			found++
		}
	}
	if err == nil && bound > 0 && f.now().Sub(since) >= bound {
		_, err = f.jump(ctx) // what was asked for may have been deleted while the request was under way
	}
	f.polled(now, found, err)
	return err
}

func (f *FS) polled(now time.Time, found int, err error) {
	switch {
	case err != nil:
		f.lost.Store(true) // a listing may lead past an object that is damaged
	case found > 0:
		f.at.polls, f.at.last = 0, now
	default:
		f.at.polls, f.at.last = f.at.polls+1, now
	}
}

// LookAgain makes the next refresh look for the newest entries by a listing: the next slot may have been deleted, with
// newer data after it, and the clock of a suspended machine does not tell.
func (f *FS) LookAgain() { f.lost.Store(true) }

// step reads the next slot, and reports whether there was anything.
func (f *FS) step(ctx context.Context) (found bool, err error) {
	e, err := f.seq.Get(ctx, f.at.Next)
	if sequence.IsMissing(err) {
		return false, nil
	}
	if err == nil {
		err = f.seq.CheckOrder(e, f.at.epoch)
	}
	if err != nil {
		return false, err
	}
	if !e.Fence { // a fence's epoch says nothing: a stalled writer may have put it where data was trimmed
		if err := f.addEntry(ctx, e); err != nil {
			return false, err
		}
		f.at.epoch = e.Epoch
	}
	f.at.Next = e.Slot + 1
	return true, nil
}

// addEntry makes the files those of an entry that comes next.
func (f *FS) addEntry(ctx context.Context, e sequence.Entry) error {
	key := f.seq.Key(e.Slot)
	b, err := filelist.DecodeBody(e.Body, e.Slot, key)
	if err != nil {
		return err
	}
	now := filelist.SlotBody{Slot: e.Slot, Body: b}
	st := &filelist.State{Slot: b.ListSlot}
	switch {
	case b.List != nil || b.Edit != nil: // an edit of the list that is there, unless listings hid one between
		st, err = filelist.ReadList(ctx, f.seq, &sequence.TailView{}, now, f.at.Known)
		if sequence.IsMissing(err) {
			err = sequence.AsCorruption(err)
		}
		if err != nil {
			return err
		}
	case b.ListSlot != f.at.List:
		return base.Corruptf(key, sequence.HeaderSize, "the list of files is in slot %d, and was found in slot %d",
			b.ListSlot, f.at.List)
	}
	st.Data = filelist.Bodies(now)
	return f.take(st)
}

// jump goes to where a listing shows the end, and reports whether that is further on.
func (f *FS) jump(ctx context.Context) (newer bool, err error) {
	err = f.seq.Retry(func() error {
		v, err := f.seq.Tail(ctx)
		if err == nil && v.Data == 0 && f.at.Next > 0 {
			return f.checkThere(ctx)
		}
		if err != nil || v.Last < f.at.Next || v.Data == 0 {
			return err
		}
		newer = true
		if v.Data >= f.at.Next {
			if err := f.catchUp(ctx, v); err != nil {
				return err
			}
		}
		f.at.Next = v.Last + 1
		return nil
	})
	if sequence.IsMissing(err) {
		err = sequence.AsCorruption(err)
	}
	return newer, err
}

// catchUp reads what a view of the tail shows. The files stay as they are unless all of it is there; but a first
// reading, which has no files to lose, puts each body where it belongs at once.
func (f *FS) catchUp(ctx context.Context, v *sequence.TailView) error {
	if f.at.Next == 0 {
		f.at = mark{}
	}
	st, err := filelist.Read(ctx, f.seq, v, f.at.Known)
	if err == nil && f.at.Next > 0 {
		err = st.Gather()
	}
	if err == nil {
		err = f.take(st)
	}
	if err == nil {
		f.at.epoch = max(f.at.epoch, st.Epoch)
	}
	return err
}

// Within implements objectdir.Directory.
func (f *FS) Within(ctx context.Context) (end func()) {
	s := &span{ctx: ctx}
	f.span.Store(s)
	return func() {
		s.over.Store(true)
		f.span.CompareAndSwap(s, nil)
	}
}

// asked returns the context for reading what is new.
func (f *FS) asked() (context.Context, context.CancelFunc) { return f.span.Load().bound(f.ctx) }
