package objects

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// A process that dies at any of its requests, whether that is still performed or not, leaves a store with all that
// was acknowledged, and its successor leaves no objects that it does not need.
func TestDeathAtEachRequestToAnObjectStore(t *testing.T) {
	t.Parallel()
	for _, outcome := range []objstoretest.Outcome{objstoretest.NotPerformed, objstoretest.LostReply} {
		for nth := int64(1); ; nth += int64(scale.Stride(3, 1)) {
			cut := false
			name := fmt.Sprintf("%d performed=%v", nth, outcome == objstoretest.LostReply)
			if !t.Run(name, func(t *testing.T) { cut = deathAt(t, nth, outcome) }) {
				return
			}
			if !cut {
				require.Greater(t, nth, int64(15))
				break
			}
		}
	}
}

// deadFrom returns a client of a store that is dead from its nth request on. That request has the outcome.
func deadFrom(s objstore.Store, nth int64, outcome objstoretest.Outcome) *objstoretest.Faults {
	faults := objstoretest.NewFaults(s, 1)
	faults.Inject(func(c objstoretest.Call) objstoretest.Fault {
		if c.N == nth {
			return objstoretest.Fault{Outcome: outcome, Cut: true}
		}
		return objstoretest.Fault{}
	})
	return faults
}

func deathAt(t *testing.T, nth int64, outcome objstoretest.Outcome) (cut bool) {
	s := objstore.NewMem()
	first := takeOver(t, s, 1, 0, 0)
	first.write(3) // so that there is something to take over
	require.NoError(t, first.db.Close())

	faults := deadFrom(s, nth, outcome)
	begun, synced := first.n, first.n
	if db, err := kv.Open("", objectsOptions(first.rng, faults)); err == nil {
		w := &objectsWriter{t: t, rng: first.rng, db: db, n: first.n, synced: first.n}
		for i := 0; i < 12 && err == nil; i++ {
			if err = w.try(); i == 6 {
				err = errors.Join(err, db.Flush(t.Context()), db.Compact(t.Context(), nil, nil))
			}
		}
		_ = db.Close()
		begun, synced = w.n, w.synced
	}
	w := takeOver(t, s, 2, synced, begun)
	w.write(5)
	requireOnlyLiveObjects(t, s, w)
	requireWrites(t, w.db, w.n, w.n)
	require.NoError(t, w.db.Close())
	return faults.Calls() >= nth
}
