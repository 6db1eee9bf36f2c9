package filelist

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

// A State is what a sequence says of a store: the newest list of files, and the data since the first slot that its logs
// need, without what the caller had.
type State struct {
	List        *List    // nil: there is none yet, or the caller has it
	ManifestNum uint64   // of the manifest in force
	Slot        uint64   // of the list
	Chain       []uint64 // the slots that the list is read from, in ascending order

	Span time.Duration // of the view of the tail

	// Data yields what the logs need, in order, and an error last. Each body is fetched shortly before it is yielded,
	// and not kept. It is for one pass.
	Data iter.Seq2[SlotBody, error]

	// Known after that pass.
	First map[uint64]uint64 // of each log that is needed, the first slot that has bytes of it
	Epoch uint64            // of the last entry; 0 if it is not known
}

// Known is what a reader has read already; the zero value is nothing.
type Known struct {
	Next  uint64 // the slot after what was read; 0: nothing was read yet
	List  uint64 // the slot of the list of files
	Files *List  // that list, from which a reader goes on; nil: it has none
}

// A SlotBody is the body of the entry in a slot.
type SlotBody struct {
	Slot uint64
	Body
}

// Bodies yields those that are in memory.
func Bodies(all ...SlotBody) iter.Seq2[SlotBody, error] {
	return func(yield func(SlotBody, error) bool) {
		for _, b := range all {
			if !yield(b, nil) {
				return
			}
		}
	}
}

// Read reads the list of files, and prepares reading the data up to the newest that the view shows. have is what
// the caller has read. If something is missing, the error, or that of Data, matches objstore.ErrNotExist: it was
// trimmed, as there are newer entries, or is lost.
//
// It is one GET if the newest data is a whole list of files, as after a store was closed. Else it is one more for that
// list, and if that is an edit, one for each entry of its chain, in parallel. The data is one for each entry that the
// logs need, in parallel.
func Read(ctx context.Context, s *sequence.Sequence, v *sequence.TailView, have Known) (*State, error) {
	st := &State{}
	start := have.Next
	if v.Data > 0 {
		newest, err := ReadBody(ctx, s, v, v.Data)
		if err != nil {
			return nil, err
		}
		if st.Slot = newest.ListSlot; st.Slot != 0 && st.Slot != have.List {
			if st, err = ReadList(ctx, s, v, newest, have); err != nil {
				return nil, err
			}
			start = max(start, st.List.LogStart)
		}
	}
	st.Span, st.Data, st.First = v.Span, Bodies(), map[uint64]uint64{}
	if st.Slot == 0 {
		return st, nil
	}
	st.Data = func(yield func(SlotBody, error) bool) {
		for e, err := range s.Entries(ctx, v, max(start, 1), v.Data) {
			var b SlotBody
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
func (st *State) follow(s *sequence.Sequence, e sequence.Entry) (b SlotBody, err error) {
	if err := s.CheckOrder(e, st.Epoch); err != nil {
		return b, err
	}
	if st.Epoch = e.Epoch; e.Fence {
		return b, nil
	}
	b.Slot = e.Slot
	if b.Body, err = DecodeBody(e.Body, e.Slot, s.Key(e.Slot)); err != nil {
		return b, err
	}
	for _, c := range b.Chunks {
		if _, there := st.First[c.Log]; !there && c.Log >= st.oldest() {
			st.First[c.Log] = e.Slot
		}
	}
	return b, nil
}

// Gather fetches all data, and keeps it.
func (st *State) Gather() error {
	var all []SlotBody
	for b, err := range st.Data {
		if err != nil {
			return err
		}
		all = append(all, b)
	}
	st.Data = Bodies(all...)
	return nil
}

// ReadLogs puts log files together, by number. It passes over those that the list of files does not need.
func (st *State) ReadLogs(s *sequence.Sequence) (logs []Log, err error) {
	data := map[uint64][]byte{}
	for b, err := range st.Data {
		if err != nil {
			return nil, err
		}
		for _, c := range b.Chunks {
			if c.Log < st.oldest() {
				continue
			}
			if c.Offset != uint64(len(data[c.Log])) {
				return nil, base.Corruptf(s.Key(b.Slot), sequence.HeaderSize,
					"log %d goes on at byte %d, and is there up to byte %d", c.Log, c.Offset, len(data[c.Log]))
			}
			data[c.Log] = append(data[c.Log], c.Data...)
		}
	}
	for number, data := range data {
		logs = append(logs, Log{number, data})
	}
	slices.SortFunc(logs, func(a, b Log) int { return cmp.Compare(a.Number, b.Number) })
	return logs, nil
}

// oldest returns the number of the oldest log that is needed.
func (st *State) oldest() uint64 {
	if st.List == nil || len(st.List.Logs) == 0 {
		return 0
	}
	return st.List.Logs[0]
}

// ReadBody returns what the entry in a slot carries, which must be data.
func ReadBody(ctx context.Context, s *sequence.Sequence, v *sequence.TailView, slot uint64) (b SlotBody, err error) {
	e, err := s.Data(ctx, v, slot)
	if err != nil {
		return b, err
	}
	b.Slot = slot
	b.Body, err = DecodeBody(e.Body, slot, s.Key(slot))
	return b, err
}

// listOf decodes the whole list of files of an entry.
func listOf(s *sequence.Sequence, b SlotBody) (*List, error) {
	l, _, err := Decode(b.List)
	if err == nil && l.LogStart > b.Slot {
		err = fmt.Errorf("%w: its logs begin in slot %d", ErrMalformed, l.LogStart)
	}
	if err != nil {
		return nil, Malformed(s.Key(b.Slot), err)
	}
	return &l, nil
}

// Malformed is the error of a list of files in the object with a key.
func Malformed(key string, err error) error {
	if errors.Is(err, manifest.ErrNewerFormat) {
		return fmt.Errorf("%s: %w", key, err)
	}
	return &base.CorruptionError{File: key, Offset: -1, What: "the list of files", Cause: err}
}
