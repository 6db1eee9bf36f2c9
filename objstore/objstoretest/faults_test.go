package objstoretest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

func always(fault objstoretest.Fault) objstoretest.Rule {
	return func(objstoretest.Call) objstoretest.Fault { return fault }
}

func list(t *testing.T, s objstore.Store) (keys []string) {
	t.Helper()
	for o, err := range s.List(t.Context(), "", "") {
		require.NoError(t, err)
		keys = append(keys, o.Key)
	}
	return keys
}

// writes performs one of each kind of write, on "old", "new" and "gone".
func writes(ctx context.Context, s objstore.Store) []error {
	return []error{
		s.Put(ctx, "old", bytes.NewReader([]byte("put")), 3),
		s.PutIfAbsent(ctx, "new", []byte("created")),
		s.Delete(ctx, "gone"),
	}
}

func reads(ctx context.Context, s objstore.Store) (errs []error) {
	_, err := s.GetRange(ctx, "old", 0, make([]byte, 3))
	if err != nil && !errors.Is(err, io.EOF) {
		errs = append(errs, err)
	}
	for _, err := range s.List(ctx, "", "") {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func filled(t *testing.T) objstore.Store {
	t.Helper()
	base := objstore.NewMem()
	for _, key := range []string{"old", "gone"} {
		require.NoError(t, base.PutIfAbsent(t.Context(), key, []byte("before")))
	}
	return base
}

func TestOutcomes(t *testing.T) {
	before, after := []string{"gone", "old"}, []string{"new", "old"}
	for name, c := range map[string]struct {
		fault objstoretest.Fault
		want  []string
		err   error
	}{
		"not performed": {objstoretest.Fault{Outcome: objstoretest.NotPerformed}, before, objstoretest.ErrInjected},
		"lost reply":    {objstoretest.Fault{Outcome: objstoretest.LostReply}, after, objstoretest.ErrInjected},
		"late":          {objstoretest.Fault{Outcome: objstoretest.Late}, before, objstoretest.ErrInjected},
	} {
		t.Run(name, func(t *testing.T) {
			base := filled(t)
			s := objstoretest.NewFaults(base, 1)
			s.Inject(always(c.fault))
			for _, err := range writes(t.Context(), s) {
				require.ErrorIs(t, err, objstore.ErrUnknown)
				require.ErrorIs(t, err, c.err)
			}
			require.Equal(t, c.want, list(t, base))
			failures := reads(t.Context(), s)
			require.Len(t, failures, 2, "reads have no outcome: they fail")
			for _, err := range failures {
				require.ErrorIs(t, err, c.err)
				require.NotErrorIs(t, err, objstore.ErrUnknown)
			}
			s.Cut()
			results := s.Deliver()
			if c.fault.Outcome == objstoretest.Late {
				require.Equal(t, []error{nil, nil, nil}, results)
				require.Equal(t, after, list(t, base), "it arrives after all")
			} else {
				require.Empty(t, results)
			}
			require.Empty(t, s.Deliver(), "once")
		})
	}
}

func TestNamedErrors(t *testing.T) {
	base := filled(t)
	s := objstoretest.NewFaults(base, 1)
	s.Inject(always(objstoretest.Fault{Outcome: objstoretest.NotPerformed, Err: objstore.ErrThrottled}))
	for _, err := range append(writes(t.Context(), s), reads(t.Context(), s)...) {
		require.ErrorIs(t, err, objstore.ErrThrottled)
		require.NotErrorIs(t, err, objstore.ErrUnknown)
	}
	require.Equal(t, []string{"gone", "old"}, list(t, base))
}

func TestLateBodiesAreKept(t *testing.T) {
	base := objstore.NewMem()
	s := objstoretest.NewFaults(base, 1)
	s.Inject(always(objstoretest.Fault{Outcome: objstoretest.Late}))
	ctx, cancel := context.WithCancel(t.Context())
	body := []byte("body")
	require.Error(t, s.PutIfAbsent(ctx, "a", body))
	require.Error(t, s.Put(ctx, "b", bytes.NewReader(body), 4))
	require.Error(t, s.PutIfAbsent(ctx, "a", body))
	clear(body)
	cancel()
	results := s.Deliver()
	require.Len(t, results, 3)
	require.NoError(t, results[0])
	require.ErrorIs(t, results[2], objstore.ErrExists)
	for _, key := range []string{"a", "b"} {
		got, err := objstore.ReadAll(t.Context(), base, key, 0)
		require.NoError(t, err)
		require.Equal(t, "body", string(got))
	}
}

func TestCutAndPartition(t *testing.T) {
	base := filled(t)
	s, other := objstoretest.NewFaults(base, 1), objstoretest.NewFaults(base, 1)
	cutOff := func() {
		t.Helper()
		for _, err := range writes(t.Context(), s) {
			require.ErrorIs(t, err, objstoretest.ErrCut)
			require.ErrorIs(t, err, objstore.ErrUnknown)
		}
		failures := reads(t.Context(), s)
		require.Len(t, failures, 2)
		for _, err := range failures {
			require.ErrorIs(t, err, objstoretest.ErrCut)
		}
		require.Equal(t, []string{"gone", "old"}, list(t, other))
	}
	s.Partition(true)
	cutOff()
	s.Partition(false)
	require.Empty(t, reads(t.Context(), s), "healed")
	s.Cut()
	cutOff()
	s.Partition(false)
	cutOff()
}

// TestCutWithACall cuts a client off before, and after, its third call reaches the store.
func TestCutWithACall(t *testing.T) {
	for outcome, want := range map[objstoretest.Outcome][]string{
		objstoretest.Performed: {"1", "2", "3"}, objstoretest.NotPerformed: {"1", "2"},
	} {
		base := objstore.NewMem()
		s := objstoretest.NewFaults(base, 1)
		s.Inject(func(c objstoretest.Call) objstoretest.Fault {
			if c.N == 3 {
				return objstoretest.Fault{Outcome: outcome, Cut: true}
			}
			return objstoretest.Fault{}
		})
		for i := range 5 {
			err := s.PutIfAbsent(t.Context(), strconv.Itoa(i+1), nil)
			if i < 2 {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, objstore.ErrUnknown)
			}
		}
		require.Equal(t, want, list(t, base))
	}
}

// TestCutMeetsCallsUnderWay: a call that a rule holds up does not reach the store any more.
func TestCutMeetsCallsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := objstore.NewMem()
		s := objstoretest.NewFaults(base, 1)
		hold := make(chan struct{})
		s.Inject(func(objstoretest.Call) objstoretest.Fault {
			<-hold
			return objstoretest.Fault{}
		})
		var err error
		var all sync.WaitGroup
		all.Go(func() { err = s.PutIfAbsent(t.Context(), "key", nil) })
		synctest.Wait()
		s.Cut()
		close(hold)
		all.Wait()
		require.ErrorIs(t, err, objstoretest.ErrCut)
		require.Empty(t, list(t, base))
	})
}

func TestDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := objstoretest.NewFaults(filled(t), 1)
		s.Inject(always(objstoretest.Fault{Delay: time.Second, Bandwidth: 100}))
		start := time.Now()
		_, err := s.GetRange(t.Context(), "old", 0, make([]byte, 6))
		require.NoError(t, err)
		require.Equal(t, 1060*time.Millisecond, time.Since(start))
		require.NoError(t, s.Put(t.Context(), "put", bytes.NewReader(make([]byte, 200)), 200))
		require.Equal(t, 4060*time.Millisecond, time.Since(start))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		err = s.PutIfAbsent(ctx, "key", nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, objstore.ErrUnknown)
		require.Equal(t, 4560*time.Millisecond, time.Since(start))
	})
}

func TestDamagedReads(t *testing.T) {
	base := objstore.NewMem()
	body := []byte("0123456789")
	require.NoError(t, base.PutIfAbsent(t.Context(), "key", body))
	s := objstoretest.NewFaults(base, 1)

	s.Inject(always(objstoretest.Fault{Truncate: true}))
	p := make([]byte, 20)
	n, err := s.GetRange(t.Context(), "key", 0, p)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.NotErrorIs(t, err, io.EOF)
	require.Equal(t, 5, n)

	s.Inject(always(objstoretest.Fault{Corrupt: true}))
	n, err = s.GetRange(t.Context(), "key", 0, p)
	require.Equal(t, io.EOF, err)
	require.Equal(t, 10, n)
	flipped := 0
	for i := range n {
		flipped += bits.OnesCount8(p[i] ^ body[i])
	}
	require.Equal(t, 1, flipped)
}

func TestStaleListings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := objstore.NewMem()
		for _, key := range []string{"m/3", "z/1", "m/1", "m/2"} {
			require.NoError(t, base.PutIfAbsent(t.Context(), key, nil))
			time.Sleep(time.Second)
		}
		require.NoError(t, base.PutIfAbsent(t.Context(), "m/4", nil)) // in the same instant as the next
		require.NoError(t, base.PutIfAbsent(t.Context(), "a", nil))
		s := objstoretest.NewFaults(base, 1)
		for stale, want := range [][]string{
			{"a", "m/1", "m/2", "m/3", "m/4", "z/1"}, {"a", "m/1", "m/2", "m/3", "z/1"}, {"m/1", "m/2", "m/3", "z/1"},
			{"m/1", "m/3", "z/1"}, {"m/3", "z/1"}, {"m/3"}, nil, nil,
		} {
			s.Inject(always(objstoretest.Fault{Stale: stale}))
			require.Equal(t, want, list(t, s), "%d newest are missing", stale)
		}
	})
}

// TestFaultsAreRepeatable whatever the order of calls for different keys.
func TestFaultsAreRepeatable(t *testing.T) {
	const keys, rounds = 20, 10
	run := func(seed uint64, order []int) (outcomes []string) {
		s := objstoretest.NewFaults(objstore.NewMem(), seed)
		var mu sync.Mutex
		s.Inject(func(c objstoretest.Call) objstoretest.Fault {
			fault := objstoretest.Fault{Outcome: objstoretest.Outcome(c.Rand.IntN(4))}
			mu.Lock()
			defer mu.Unlock()
			outcomes = append(outcomes, fmt.Sprint(c.Kind, c.Key, c.Nth, fault.Outcome))
			return fault
		})
		for range rounds {
			for _, i := range order {
				_ = s.Delete(t.Context(), fmt.Sprint("key", i))
			}
		}
		require.Equal(t, int64(keys*rounds), s.Calls())
		slices.Sort(outcomes)
		return outcomes
	}
	var up, down []int
	for i := range keys {
		up, down = append(up, i), append([]int{i}, down...)
	}
	first := run(1, up)
	require.Equal(t, first, run(1, down))
	require.NotEqual(t, first, run(2, up))
}
