package remote

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/siftkv/siftkv/objstore"
)

// fullTrims is how many calls of Trim there are for one that looks at all slots again, however old, for data that a
// delayed request has put back.
const fullTrims = 64

// Trim deletes data in slots below one, and returns how many objects. It keeps what is followed by no data up to the
// slot top written before a time, by the store's clock, and so always the newest data. It keeps the slots in keep
// too, which are in ascending order. It never deletes a fence.
//
// Whoever looks for the end of the sequence must see data that follows what was deleted: olderThan is further back
// than listings lag, and than readers take to follow.
//
// It is a LIST of the slots up to top that the last Trim has not looked at, all of them in the first call and in one of
// 64, a thousand to a request; and a DELETE for each entry deleted.
func (s *Sequence) Trim(ctx context.Context, below, top uint64, olderThan time.Time,
	keep ...uint64) (deleted int, err error) {
	s.mu.Lock()
	since := s.trimmed
	if s.trims%fullTrims == 0 {
		since = 0
	}
	s.trims++
	s.mu.Unlock()
	old, kept, err := s.obsolete(ctx, since, below, min(top, endOfSlots), olderThan, keep)
	for _, key := range old {
		if err != nil {
			break
		}
		if err = s.store.Delete(ctx, key); err == nil {
			deleted++
		}
	}
	if err != nil {
		return deleted, fmt.Errorf("siftkv: trim %s: %w", s.prefix, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trimmed = max(s.trimmed, kept)
	return deleted, nil
}

// obsolete returns the keys of data below a slot and from another on that may be deleted, newest first, and the slot
// of the oldest data that is kept.
func (s *Sequence) obsolete(ctx context.Context, since, below, top uint64,
	olderThan time.Time, keep []uint64) (keys []string, kept uint64, err error) {
	var newer objstore.Object // the next data
	for o, err := range s.store.List(ctx, s.prefix, s.key(top+1)) {
		if err != nil {
			return nil, 0, err
		}
		slot, ok := s.slotOf(o.Key)
		if !ok || o.Size == fenceSize {
			continue
		}
		if slot < since {
			break
		}
		_, needed := slices.BinarySearch(keep, slot)
		if slot < below && !needed && newer.Key != "" && newer.ModTime.Before(olderThan) {
			keys = append(keys, o.Key)
		} else {
			kept = min(slot, below)
		}
		newer = o
	}
	return keys, kept, nil
}
