package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sequence"
)

// A Log is what a sequence has of a log file: its first bytes.
type Log struct {
	Number uint64
	Data   []byte
}

// A state is what a sequence says of a store: the newest list of files, and the data since the first slot that its logs
// need, without what the caller had.
type state struct {
	list  *fileList // nil: there is none yet, or the caller has it
	num   uint64    // of the manifest in force
	slot  uint64    // of the list
	chain []uint64  // the slots that the list is read from, in ascending order

	span time.Duration // of the view of the tail

	// data yields what the logs need, in order, and an error last. Each body is fetched shortly before it is yielded,
	// and not kept. It is for one pass.
	data iter.Seq2[slotBody, error]

	// Known after that pass.
	first map[uint64]uint64 // of each log that is needed, the first slot that has bytes of it
	epoch uint64            // of the last entry; 0 if it is not known
}

// A slotBody is the body of the entry in a slot.
type slotBody struct {
	slot uint64
	body
}

// bodies yields those that are in memory.
func bodies(all ...slotBody) iter.Seq2[slotBody, error] {
	return func(yield func(slotBody, error) bool) {
		for _, b := range all {
			if !yield(b, nil) {
				return
			}
		}
	}
}

// readState reads the list of files, and prepares reading the data up to the newest that the view shows. known is what
// the caller has read. If something is missing, the error, or that of data, matches objstore.ErrNotExist: it was
// trimmed, as there are newer entries, or is lost.
//
// It is one GET if the newest data is a whole list of files, as after a store was closed. Else it is one more for that
// list, and if that is an edit, one for each entry of its chain, in parallel. The data is one for each entry that the
// logs need, in parallel.
func readState(ctx context.Context, s *sequence.Sequence, v *sequence.TailView, known mark) (*state, error) {
	st := &state{span: v.Span, data: bodies(), first: map[uint64]uint64{}}
	if v.Data == 0 {
		return st, nil
	}
	newest, err := readBody(ctx, s, v, v.Data)
	if err != nil || newest.lists == 0 {
		return st, err
	}
	start := known.next
	if st.slot = newest.lists; st.slot != known.list {
		if err := readList(ctx, s, v, st, newest, known); err != nil {
			return nil, err
		}
		start = max(start, st.list.logStart)
	}
	st.data = func(yield func(slotBody, error) bool) {
		for e, err := range s.Entries(ctx, v, max(start, 1), v.Data) {
			var b slotBody
			if err == nil {
				b, err = st.follow(s, e)
			}
			if err != nil || !e.Fence {
				if !yield(b, err) || err != nil {
					return
				}
			}
		}
	}
	return st, nil
}

// follow returns the body of the entry that comes next; of a fence, none.
func (st *state) follow(s *sequence.Sequence, e sequence.Entry) (b slotBody, err error) {
	if err := s.CheckOrder(e, st.epoch); err != nil {
		return b, err
	}
	if st.epoch = e.Epoch; e.Fence {
		return b, nil
	}
	b.slot = e.Slot
	if b.body, err = decodeBody(e.Body, e.Slot, s.Key(e.Slot)); err != nil {
		return b, err
	}
	for _, c := range b.chunks {
		if _, there := st.first[c.log]; !there && c.log >= st.oldest() {
			st.first[c.log] = e.Slot
		}
	}
	return b, nil
}

// gather fetches all data, and keeps it.
func (st *state) gather() error {
	var all []slotBody
	for b, err := range st.data {
		if err != nil {
			return err
		}
		all = append(all, b)
	}
	st.data = bodies(all...)
	return nil
}

// logs puts log files together, by number. It passes over those that the list of files does not need.
func (st *state) logs(s *sequence.Sequence) (logs []Log, err error) {
	data := map[uint64][]byte{}
	for b, err := range st.data {
		if err != nil {
			return nil, err
		}
		for _, c := range b.chunks {
			if c.log < st.oldest() {
				continue
			}
			if c.offset != uint64(len(data[c.log])) {
				return nil, base.Corruptf(s.Key(b.slot), sequence.HeaderSize,
					"log %d goes on at byte %d, and is there up to byte %d", c.log, c.offset, len(data[c.log]))
			}
			data[c.log] = append(data[c.log], c.data...)
		}
	}
	for number, data := range data {
		logs = append(logs, Log{number, data})
	}
	slices.SortFunc(logs, func(a, b Log) int { return cmp.Compare(a.Number, b.Number) })
	return logs, nil
}

// oldest returns the number of the oldest log that is needed.
func (st *state) oldest() uint64 {
	if st.list == nil || len(st.list.logs) == 0 {
		return 0
	}
	return st.list.logs[0]
}

// readBody returns what the entry in a slot carries, which must be data.
func readBody(ctx context.Context, s *sequence.Sequence, v *sequence.TailView, slot uint64) (b slotBody, err error) {
	e, err := s.Data(ctx, v, slot)
	if err != nil {
		return b, err
	}
	b.slot = slot
	b.body, err = decodeBody(e.Body, slot, s.Key(slot))
	return b, err
}

// decodeList decodes the whole list of files of an entry.
func decodeList(s *sequence.Sequence, b slotBody) (*fileList, error) {
	l, _, err := decodeFileList(b.list)
	if err == nil && l.logStart > b.slot {
		err = fmt.Errorf("%w: its logs begin in slot %d", errList, l.logStart)
	}
	if err != nil {
		return nil, asListError(s.Key(b.slot), err)
	}
	return &l, nil
}

// asListError is the error of a list of files in the object with a key.
func asListError(key string, err error) error {
	if errors.Is(err, manifest.ErrNewerFormat) {
		return fmt.Errorf("%s: %w", key, err)
	}
	return &base.CorruptionError{File: key, Offset: -1, What: "the list of files", Cause: err}
}
