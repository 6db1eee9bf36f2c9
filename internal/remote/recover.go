package remote

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
)

// A Log is what a sequence has of a log file: its first bytes.
type Log struct {
	Number uint64
	Data   []byte
}

// Recover fences the log in a sequence, whose writer before puts nothing from now on, and returns the log files in it,
// by number. They are those from the number oldest on; what is there of older ones is passed over. The search begins
// at the slot from, which [Logs.Start] gave for that number; 0 stands for the first.
//
// The order of opening a store is: its manifests first, which gives the epoch, from and oldest; then its log. So
// nobody can have trimmed slots from that one on but who has opened the store after the caller. If somebody has, the
// error matches ErrFenced or ErrMoved, and the caller begins again. It matches base.ErrCorruption, and names the
// object, if part of a log is missing.
//
// It is what From and Fence need: two LISTs (more above a thousand entries), a PUT, and a GET for each entry and one
// more.
func Recover(ctx context.Context, s *Sequence, from, oldest, epoch uint64, opts LogOptions) (*Logs, []Log, error) {
	r := recovery{s: s, oldest: oldest, logs: map[uint64]*Log{}, first: map[uint64]uint64{}}
	r.end.Last = max(from, 1) - 1
	for e, err := range s.From(ctx, r.end.Last+1) {
		if err != nil {
			return nil, nil, r.explain(ctx, err, epoch)
		}
		if err := r.add(e); err != nil {
			return nil, nil, err
		}
	}
	w, found, err := s.Fence(ctx, r.end, epoch)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range found {
		if err := r.add(e); err != nil {
			return nil, nil, err
		}
	}
	logs := make([]Log, 0, len(r.logs))
	for _, log := range r.logs {
		logs = append(logs, *log)
	}
	slices.SortFunc(logs, func(a, b Log) int { return cmp.Compare(a.Number, b.Number) })
	return newLogs(w, r.first, opts), logs, nil
}

// A recovery puts log files together.
type recovery struct {
	s      *Sequence
	oldest uint64
	end    End
	logs   map[uint64]*Log
	first  map[uint64]uint64 // the slot where a log begins
}

// add adds the next entry.
func (r *recovery) add(e Entry) error {
	key := r.s.key(e.Slot)
	if e.Epoch < r.end.Epoch {
		return base.Corruptf(key, 40, "an entry of epoch %d after one of epoch %d: the store has let both writers put",
			e.Epoch, r.end.Epoch)
	}
	r.end.Last, r.end.Epoch = e.Slot, e.Epoch
	if e.Fence {
		return nil
	}
	r.end.Data = Entry{Slot: e.Slot}
	return decodeChunks(e.Body, key, func(c chunk) error {
		if c.log < r.oldest {
			return nil
		}
		log := r.logs[c.log]
		if log == nil {
			log = &Log{Number: c.log}
			r.logs[c.log], r.first[c.log] = log, e.Slot
		}
		if c.offset != uint64(len(log.Data)) {
			return base.Corruptf(key, headerSize, "log %d goes on at byte %d, and is there up to byte %d", c.log,
				c.offset, len(log.Data))
		}
		log.Data = append(log.Data, c.data...)
		return nil
	})
}

// explain returns why the log cannot be read: a slot may be missing because somebody has taken over and trimmed. Then
// that one's entries are further on: where a listing ends, or behind, if that lags.
func (r *recovery) explain(ctx context.Context, err error, epoch uint64) error {
	if !isMissing(err) || !errors.Is(err, base.ErrCorruption) {
		return err
	}
	const tries = 8   // that an object is listed and not there does not last
	next := uint64(1) // slots before this one tell nothing
	for range tries {
		last, _, failed := r.s.top(ctx)
		if failed != nil {
			return failed
		}
		if last < next {
			return err // a listing that began when that slot was free shows nothing from there on
		}
		for next = last; ; next++ {
			e, failed := r.s.Get(ctx, next)
			if isMissing(failed) {
				break
			}
			if failed != nil {
				return failed
			}
			if e.Epoch >= epoch {
				return &FencedError{Key: r.s.key(next), Own: epoch, Epoch: e.Epoch}
			}
		}
	}
	return err
}
