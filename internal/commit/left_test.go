package commit

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/callback"
	"github.com/siftkv/siftkv/internal/memtable"
)

// A leader that does not return, because a function that it calls panics or ends its goroutine, has the store fail,
// gives the others of its group the error, and passes leadership on.
func TestLeadersThatAreLeftPassLeadershipOn(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(){"goexit": runtime.Goexit, "panic": func() { panic("boom") }} {
		for _, where := range []string{"function", "merger"} {
			t.Run(name+" in a "+where, func(t *testing.T) {
				t.Parallel()
				s := newTestStore(t)
				ctx := context.Background()
				began, release := make(chan struct{}), make(chan struct{})
				leaveOnce := sync.OnceFunc(func() { close(began); <-release; leave() })
				var all sync.WaitGroup
				all.Go(func() {
					defer func() { _ = recover() }()
					if where == "function" {
						_ = s.Exclusive(ctx, func() error { leaveOnce(); return nil })
						return
					}
					s.store.Combine = func([]byte, [][]byte) ([]byte, error) { leaveOnce(); return nil, nil }
					for { // until an operand gets a fold
						_ = s.Commit(ctx, newBatch(base.KindMerge, "k"), nil, Written)
					}
				})
				<-began
				errs := make([]error, 8)
				for i := range errs {
					all.Go(func() { errs[i] = s.Commit(ctx, newBatch(base.KindSet, "k"), nil, Level(i%3)) })
				}
				for {
					if _, n := s.Queue(); n == len(errs) {
						break
					}
					runtime.Gosched()
				}
				close(release)
				all.Wait()
				s.idle(t)
				require.ErrorIs(t, s.failed, errLeft)
				require.NoError(t, errors.Join(errs...), "this store goes on; DB refuses writes in MakeRoom")
				require.NoError(t, s.Close(func() bool { return false }))
			})
		}
	}
}

// leavingReads are of a transaction of whose validation a filter panics, or ends the goroutine.
type leavingReads struct{ leave func() }

func (r leavingReads) Validate(base.SeqNum) error        { r.leave(); return nil }
func (leavingReads) ValidateIn(*memtable.Memtable) error { return nil }

// A panic in the validation of a transaction is that transaction's error, whichever writer leads.
func TestPanicsInValidationAreTheTransactions(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	ctx := context.Background()
	err := s.Commit(ctx, newBatch(base.KindSet, "k"), leavingReads{func() { panic("boom") }}, Written)
	var e *callback.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "boom", e.Value)
	require.NoError(t, s.failed)

	left := make(chan struct{})
	go func() {
		defer close(left)
		_ = s.Commit(ctx, newBatch(base.KindSet, "k"), leavingReads{runtime.Goexit}, Written)
	}()
	<-left
	require.ErrorIs(t, s.failed, errLeft)
	require.NoError(t, s.Commit(ctx, newBatch(base.KindSet, "k"), nil, Written))
	require.NoError(t, s.Close(func() bool { return false }))
}
