package objstore_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// script makes the first faults those of the calls of a kind, in their order.
func script(kind objstore.Kind, faults ...objstoretest.Fault) objstoretest.Rule {
	return func(c objstoretest.Call) objstoretest.Fault {
		if c.Kind == kind && c.Nth <= int64(len(faults)) {
			return faults[c.Nth-1]
		}
		return objstoretest.Fault{}
	}
}

var (
	lost   = objstoretest.Fault{Outcome: objstoretest.LostReply}
	none   = objstoretest.Fault{}
	failed = objstoretest.Fault{Outcome: objstoretest.NotPerformed}
	late   = objstoretest.Fault{Outcome: objstoretest.Late}
)

func fails(err error) objstoretest.Fault {
	return objstoretest.Fault{Outcome: objstoretest.NotPerformed, Err: err}
}

func TestCommitFindsOut(t *testing.T) {
	denied, slow := errors.New("access denied"), fails(objstore.ErrThrottled)
	for name, c := range map[string]struct {
		faults []objstoretest.Fault
		taken  bool // by another's object
		want   error
	}{
		"at once":                       {nil, false, nil},
		"taken":                         {nil, true, objstore.ErrExists},
		"the reply is lost":             {[]objstoretest.Fault{lost}, false, nil},
		"two replies are lost":          {[]objstoretest.Fault{lost, lost}, false, nil},
		"the request is lost":           {[]objstoretest.Fault{failed}, false, nil},
		"the request is lost, taken":    {[]objstoretest.Fault{failed, failed}, true, objstore.ErrExists},
		"the reply is lost, taken":      {[]objstoretest.Fault{lost}, true, objstore.ErrExists},
		"the request is late":           {[]objstoretest.Fault{late}, false, nil},
		"denied":                        {[]objstoretest.Fault{fails(denied)}, false, denied},
		"throttled":                     {[]objstoretest.Fault{slow}, false, objstore.ErrThrottled},
		"lost, then denied":             {[]objstoretest.Fault{lost, fails(denied)}, false, objstore.ErrUnknown},
		"lost, then throttled for once": {[]objstoretest.Fault{lost, slow}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				s := objstoretest.NewFaults(objstore.NewMem(), 1)
				content := "mine"
				if c.taken {
					content = "mine? another's"
					require.NoError(t, s.Put(ctx, "manifest/1", readerOf(content), int64(len(content))))
				}
				s.Inject(script(objstore.PutIfAbsent, c.faults...))
				err := objstore.Commit(ctx, s, "manifest/1", []byte("mine"))
				require.ErrorIs(t, err, c.want)
				for _, err := range s.Deliver() {
					require.ErrorIs(t, err, objstore.ErrExists)
				}
				got, err := objstore.ReadAll(ctx, s, "manifest/1", 0)
				if c.want == nil || c.taken {
					require.NoError(t, err)
					require.Equal(t, content, string(got))
				}
			})
		})
	}
}

// TestCommitReadsAgain when the read fails that compares contents.
func TestCommitReadsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := objstoretest.NewFaults(objstore.NewMem(), 1), t.Context()
		create, read := script(objstore.PutIfAbsent, lost), script(objstore.Get, failed, none, failed)
		s.Inject(func(c objstoretest.Call) objstoretest.Fault {
			if c.Kind == objstore.Get {
				return read(c)
			}
			return create(c)
		})
		require.NoError(t, objstore.Commit(ctx, s, "k", []byte("mine")))
		err := objstore.Commit(ctx, s, "k", []byte("mine"))
		require.ErrorIs(t, err, objstore.ErrExists, "it knows of no try before")
	})
}

func TestCommitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := objstoretest.NewFaults(objstore.NewMem(), 1)
		s.Partition(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := objstore.Commit(ctx, s, "k", []byte("mine"))
		require.ErrorIs(t, err, objstore.ErrUnknown)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, objstoretest.ErrCut)
		require.Greater(t, s.Calls(), int64(60), "it went on trying")
		require.Less(t, s.Calls(), int64(70), "with pauses")

		healed := make(chan struct{})
		go func() {
			time.Sleep(time.Minute)
			s.Partition(false)
			close(healed)
		}()
		require.NoError(t, objstore.Commit(t.Context(), s, "k", []byte("mine")))
		<-healed
	})
}

// TestCommitToADeletedName does not begin again with a name that it saw taken.
func TestCommitToADeletedName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := objstore.NewMem()
		s, ctx := objstoretest.NewFaults(base, 1), t.Context()
		s.Inject(func(c objstoretest.Call) objstoretest.Fault {
			if c.Kind == objstore.Get {
				_ = base.Delete(ctx, c.Key)
			}
			return script(objstore.PutIfAbsent, lost)(c)
		})
		err := objstore.Commit(ctx, s, "k", []byte("mine"))
		require.ErrorIs(t, err, objstore.ErrUnknown)
		require.ErrorIs(t, err, objstore.ErrNotExist)
		_, err = base.GetRange(ctx, "k", 0, make([]byte, 1))
		require.ErrorIs(t, err, objstore.ErrNotExist)
	})
}

func TestReadAllNeedsFewRequests(t *testing.T) {
	var c objstore.Counters
	s, ctx := objstore.WithCounters(objstore.NewMem(), &c), t.Context()
	for _, n := range []struct {
		size, hint int
		requests   int64
	}{{0, 0, 1}, {1, 0, 1}, {4096, 0, 1}, {4097, 0, 2}, {4097, 4097, 1}, {100000, 100000, 1}, {100000, 99999, 2},
		{1 << 20, 0, 9}} {
		key := strconv.Itoa(n.size)
		body := make([]byte, n.size)
		for i := range body {
			body[i] = byte(i * i >> 8)
		}
		require.NoError(t, s.Put(ctx, key, readerOf(string(body)), int64(n.size)))
		before := c.Snapshot()
		got, err := objstore.ReadAll(ctx, s, key, n.hint)
		require.NoError(t, err)
		require.Equal(t, body, got)
		require.Equal(t, n.requests, c.Snapshot().Minus(before)[objstore.Get].Requests, "%+v", n)
	}
	_, err := objstore.ReadAll(ctx, s, "absent", 0)
	require.ErrorIs(t, err, objstore.ErrNotExist)
}

// An object's content that was damaged on its way is no other content.
func TestDamagedContentIsNotAnothers(t *testing.T) {
	damagedOnce := func(c objstoretest.Call) objstoretest.Fault {
		if c.Kind == objstore.PutIfAbsent && c.Nth == 1 {
			return lost
		}
		return objstoretest.Fault{Corrupt: c.Kind == objstore.Get && c.Nth == 1}
	}
	synctest.Test(t, func(t *testing.T) {
		base := objstore.NewMem()
		s := objstoretest.NewFaults(base, 1)
		s.Inject(damagedOnce)
		require.NoError(t, objstore.Commit(t.Context(), s, "key", []byte("mine")))
		require.NoError(t, objstore.CheckConditional(t.Context(), s, ""))
		require.NoError(t, base.PutIfAbsent(t.Context(), "others", []byte("same length as")))
		require.ErrorIs(t, objstore.Commit(t.Context(), s, "others", []byte("this, of mine!")), objstore.ErrExists)
	})
}
