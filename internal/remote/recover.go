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

// recovered is what a writer finds when it opens a store.
type recovered struct {
	*state
	logs  []Log             // by number
	first map[uint64]uint64 // the slot where each begins
}

// openLogs makes the caller the writer of the store in a sequence, and returns what is there: the newest list of
// files, and the log files that it needs or that are newer. The writer before puts nothing from now on. The look may be
// an earlier one; nil: it has one. It matches base.ErrCorruption, and names the object, if part of a log is missing.
// The logs end with ctx.
//
// It is a Look and a Fence; beside the latter's last requests, one GET if the newest data is a list of files, else two
// at least, and one for each entry that the logs need.
func openLogs(ctx context.Context, s *Sequence, l *Look, opts LogOptions) (*Logs, *recovered, error) {
	var r *recovered
	for {
		if l == nil {
			var err error
			if l, err = s.Look(ctx); err != nil {
				return nil, nil, err
			}
		}
		w, err := s.Fence(ctx, l, func(ctx context.Context) error {
			st, err := s.state(ctx, l, mark{})
			if err == nil {
				r, err = s.recover(st)
			}
			return err
		})
		if err == nil {
			return newLogs(ctx, w, r, opts), r, nil
		}
		if l = nil; !errors.Is(err, ErrMoved) {
			return nil, nil, err
		}
	}
}

// recover puts log files together. Those are passed over that the list of files does not need.
func (s *Sequence) recover(st *state) (*recovered, error) {
	r := &recovered{state: st, first: map[uint64]uint64{}}
	oldest, logs := st.oldest(), map[uint64]*Log{}
	for _, b := range st.data {
		for _, c := range b.chunks {
			if c.log < oldest {
				continue
			}
			log := logs[c.log]
			if log == nil {
				log = &Log{Number: c.log}
				logs[c.log], r.first[c.log] = log, b.slot
			}
			if c.offset != uint64(len(log.Data)) {
				return nil, base.Corruptf(s.key(b.slot), headerSize, "log %d goes on at byte %d, and is there up to "+
					"byte %d", c.log, c.offset, len(log.Data))
			}
			log.Data = append(log.Data, c.data...)
		}
	}
	for _, log := range logs {
		r.logs = append(r.logs, *log)
	}
	slices.SortFunc(r.logs, func(a, b Log) int { return cmp.Compare(a.Number, b.Number) })
	return r, nil
}

// oldest returns the number of the oldest log that is needed.
func (st *state) oldest() uint64 {
	if st.list == nil || len(st.list.logs) == 0 {
		return 0
	}
	return st.list.logs[0]
}
