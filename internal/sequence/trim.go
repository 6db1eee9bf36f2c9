package sequence

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/siftkv/siftkv/objstore"
)

// One call of Trim in fullTrims lists all slots again, for data that a delayed request has put back.
const fullTrims = 64

// Trim deletes data in slots below a slot, and returns the number of objects. It deletes an entry only if the next
// data, up to the slot top, was put before olderThan, by the store's clock. So it keeps the newest data. It keeps the
// slots in keep, which must be in ascending order, and all fences.
//
// A reader that looks for the end must see data that follows what was deleted. So olderThan must be longer ago than
// listings lag, and than readers take to follow.
//
// It is a LIST of the slots up to top that the last Trim has not looked at, a thousand to a request, and a DELETE for
// each entry deleted. The first call, and one in 64, lists all slots up to top.
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

// obsolete returns the keys of data in slots of at least since and less than below that may be deleted, newest first,
// and the slot of the oldest data that is kept.
func (s *Sequence) obsolete(ctx context.Context, since, below, top uint64,
	olderThan time.Time, keep []uint64) (keys []string, kept uint64, err error) {
	var newer objstore.Object // the next data
	for o, err := range s.store.List(ctx, s.prefix, s.Key(top+1)) {
		if err != nil {
			return nil, 0, err
		}
		slot, ok := s.SlotOf(o.Key)
		if !ok || o.Size == FenceSize {
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
