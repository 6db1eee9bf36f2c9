package remote

import (
	"cmp"
	"context"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
)

// A Log is what a sequence has of a log file: its first bytes.
type Log struct {
	Number uint64
	Data   []byte
}

// openLogs makes the caller the writer of the store in a sequence. take is given what is there: the newest list of
// files, and the log files that it needs or that are newer. It consumes all data; if the look turns out to have been
// stale, take is called again, with a later state. Earlier writers can put nothing any more. The look may be an earlier
// one; if it is nil, openLogs calls Look. An error matches base.ErrCorruption, and names the object, if part of a log
// is missing. The logs end with ctx.
//
// It is a Look and a Fence. Parallel to the last requests of Fence, it is one GET if the newest data is a list of
// files, else at least two, and one for each entry that the logs need.
func openLogs(ctx context.Context, s *Sequence, l *Look, opts LogOptions,
	take func(*state) error) (*Logs, *state, error) {
	var w *Writer
	var st *state
	err := s.again(func() (err error) {
		if l == nil {
			if l, err = s.Look(ctx); err != nil {
				return err
			}
		}
		w, err = s.Fence(ctx, l, func(ctx context.Context) (err error) {
			if st, err = s.state(ctx, l, mark{}); err == nil {
				err = take(st)
			}
			return err
		})
		l = nil
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return newLogs(ctx, w, st, opts), st, nil
}

// logs puts log files together, by number. It passes over those that the list of files does not need.
func (s *Sequence) logs(st *state) (logs []Log, err error) {
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
				return nil, base.Corruptf(s.key(b.slot), headerSize, "log %d goes on at byte %d, and is there up to "+
					"byte %d", c.log, c.offset, len(data[c.log]))
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
