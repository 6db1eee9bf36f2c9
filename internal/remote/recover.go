package remote

import (
	"context"

	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/sequence"
)

// openLogs makes the caller the writer of the store in a sequence. take is given what is there: the newest list of
// files, and the log files that it needs or that are newer. It consumes all data; if the view turns out to have been
// stale, take is called again, with a later state. Earlier writers can put nothing any more. The view may be an earlier
// one; if it is nil, openLogs calls Tail. An error matches base.ErrCorruption, and names the object, if part of a log
// is missing. The logs end with ctx.
//
// It is a Tail and a Fence. Parallel to the last requests of Fence, it is one GET if the newest data is a list of
// files, else at least two, and one for each entry that the logs need.
func openLogs(ctx context.Context, s *sequence.Sequence, v *sequence.TailView, opts LogOptions,
	take func(*filelist.State) error) (*Logs, *filelist.State, error) {
	var w *sequence.Writer
	var st *filelist.State
	err := s.Retry(func() (err error) {
		if v == nil {
			if v, err = s.Tail(ctx); err != nil {
				return err
			}
		}
		w, err = s.Fence(ctx, v, func(ctx context.Context) (err error) {
			if st, err = filelist.Read(ctx, s, v, filelist.Known{}); err == nil {
				err = take(st)
			}
			return err
		})
		v = nil
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return newLogs(ctx, w, st, opts), st, nil
}
