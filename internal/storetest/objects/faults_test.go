package objects

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

func noFault(objstoretest.Call) objstoretest.Fault { return objstoretest.Fault{} }

func isPut(c objstoretest.Call) bool {
	return c.Kind == objstore.Put || c.Kind == objstore.PutIfAbsent
}

// storeFaults are what a store must get over by itself.
var storeFaults = map[string]objstoretest.Rule{
	"lost replies": func(c objstoretest.Call) (f objstoretest.Fault) {
		if c.Kind != objstore.Get && c.Kind != objstore.List && c.Rand.IntN(2) == 0 && c.Nth < 2 {
			f.Outcome = objstoretest.LostReply
		}
		return f
	},
	"all first replies lost": func(c objstoretest.Call) (f objstoretest.Fault) {
		if isPut(c) && c.Nth == 1 {
			f.Outcome = objstoretest.LostReply
		}
		return f
	},
	"late requests": func(c objstoretest.Call) (f objstoretest.Fault) {
		if c.Kind != objstore.Get && c.Kind != objstore.List && c.Rand.IntN(2) == 0 && c.Nth < 2 {
			f.Outcome = objstoretest.Late
		}
		return f
	},
	"lost requests": func(c objstoretest.Call) (f objstoretest.Fault) {
		if c.Kind != objstore.Get && c.Kind != objstore.List && c.Nth%2 == 1 {
			f.Outcome = objstoretest.NotPerformed
		}
		return f
	},
	"throttled": func(c objstoretest.Call) (f objstoretest.Fault) {
		if c.Kind != objstore.List && c.Nth < 2 {
			f.Outcome, f.Err = objstoretest.NotPerformed, objstore.ErrThrottled
		}
		return f
	},
	"truncated replies": func(c objstoretest.Call) objstoretest.Fault {
		return objstoretest.Fault{Truncate: c.Nth == 1}
	},
	"damaged replies": func(c objstoretest.Call) objstoretest.Fault {
		return objstoretest.Fault{Corrupt: c.Nth == 1}
	},
	"slow": func(c objstoretest.Call) objstoretest.Fault {
		return objstoretest.Fault{Delay: time.Duration(c.Rand.IntN(int(300 * time.Microsecond)))}
	},
}

// A store is what it should be, and no call fails, whatever the network does.
func TestAnObjectStoreWithTroubles(t *testing.T) {
	t.Parallel()
	for name, rule := range storeFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, seed := range []uint64{0, 1}[:min(scale.Count(1, 2), 2)] {
				troubles(t, rule, seed)
			}
		})
	}
}

// newObjectsStore returns an object store with a new store in it.
func newObjectsStore(t *testing.T) objstore.Store {
	t.Helper()
	s := objstore.NewMem()
	require.NoError(t, takeOver(t, s, 0, 0, 0).db.Close())
	return s
}

func troubles(t *testing.T, rule objstoretest.Rule, seed uint64) {
	s := newObjectsStore(t)
	n := 0
	for life := range seed%3 + 2 {
		faults := objstoretest.NewFaults(s, seed*10+life)
		faults.Inject(rule)
		w := takeOver(t, faults, seed*10+life, n, n)
		for range 3 {
			w.write(20)
			faults.Deliver()
			requireWrites(t, w.db, w.n, w.n)
		}
		if life%2 == 0 {
			require.NoError(t, w.db.Close())
		} // else the next one takes over
		faults.Deliver()
		n = w.n
	}
	w := takeOver(t, s, 99, n, n)
	require.NoError(t, w.db.Close())
}

// Each put in turn gets no reply; the next one finds out.
func TestEveryReplyOfAnObjectStoreGetsLost(t *testing.T) {
	t.Parallel()
	for nth := int64(1); ; nth++ {
		done := false
		t.Run(strconv.FormatInt(nth, 10), func(t *testing.T) {
			s := newObjectsStore(t)
			var puts atomic.Int64
			faults := objstoretest.NewFaults(s, 1)
			var lost atomic.Bool
			faults.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
				if isPut(c) {
					if puts.Add(1) == nth {
						f.Outcome = objstoretest.LostReply
						lost.Store(true)
					}
				}
				return f
			})
			w := takeOver(t, faults, 7, 0, 0)
			w.write(10)
			w.write(10)
			require.NoError(t, w.db.Close())
			w = takeOver(t, s, 8, w.n, w.n)
			require.NoError(t, w.db.Close())
			done = !lost.Load()
		})
		if done || t.Failed() {
			require.Greater(t, nth, int64(10))
			return
		}
	}
}
