package remote

import (
	"context"
	"time"
)

// A Follower looks for newer data in a sequence whose entries are each the whole state, and whose older ones are
// deleted. It is for one goroutine.
type Follower struct {
	s     *Sequence
	slot  uint64 // of the last entry known
	polls int    // in a row that found nothing
	last  time.Time
	now   func() time.Time
	kept  time.Duration // for which what is old is not deleted
}

// A poll looks at the end by a listing, in place of the next slot, when so many in a row have found nothing, and when
// the one before is so long ago: then the next slot may have been deleted with newer data behind it.
const (
	pollsPerList = 64
	longAgo      = time.Minute
)

// Follow returns a follower of what comes after an entry, that which the caller has.
func (s *Sequence) Follow(after uint64) *Follower {
	return &Follower{s: s, slot: after, now: time.Now, last: time.Now(), kept: longAgo}
}

// Poll returns the newest data that it finds after what the caller has, and whether there is any.
//
// A poll that finds nothing is one GET; one of 64, and one that comes a minute after the one before, is a LIST and
// a GET more (two if the sequence ends with a fence). One that finds entries needs a GET more for each. A reader that
// was further behind than old data is kept thus gets the newest after 64 polls at the latest.
func (f *Follower) Poll(ctx context.Context) (newest Entry, found bool, err error) {
	now := f.now()
	if f.polls >= pollsPerList-1 || now.Sub(f.last) >= min(f.kept, longAgo) {
		end, err := f.s.Newest(ctx)
		if err != nil {
			return Entry{}, false, err
		}
		if end.Last > f.slot {
			newest, found = end.Data, end.Data.Slot > f.slot
			f.slot = end.Last
		}
		f.polls = -1
	}
	for {
		e, err := f.s.Get(ctx, f.slot+1)
		if err != nil && !isMissing(err) && !found {
			f.polls++ // a listing may lead past an object that is damaged
			return Entry{}, false, err
		}
		if err != nil {
			break // if it is not that there is none, the next poll says so
		}
		f.slot = e.Slot
		if !e.Fence {
			newest, found = e, true
		}
	}
	f.last = now
	f.polls++
	if found {
		f.polls = 0
	}
	return newest, found, nil
}
