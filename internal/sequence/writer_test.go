package sequence

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// A writer finds its successor, whatever became of the entry that it put last, and whatever the successor has deleted.
func TestAWriterFindsItsSuccessor(t *testing.T) {
	for name, outcome := range map[string]objstoretest.Outcome{
		"the entry is there": objstoretest.LostReply, "the entry never was": objstoretest.Late,
	} {
		for _, trims := range []bool{false, true} {
			mem := objstore.NewMem()
			faults := objstoretest.NewFaults(mem, 1)
			w, _ := open(t, newTestSequence(faults))
			require.NoError(t, w.Confirm(t.Context()))
			put(t, w, "acknowledged")
			require.NoError(t, w.Confirm(t.Context()))
			faults.Inject(func(objstoretest.Call) objstoretest.Fault { return objstoretest.Fault{Outcome: outcome} })
			w.s.Wait = func(context.Context, int) bool { return false }
			_, err := w.Put(t.Context(), raw("unknown"))
			require.ErrorIs(t, err, objstore.ErrUnknown, name)
			require.Error(t, w.Confirm(t.Context()), name)
			faults.Inject(func(objstoretest.Call) objstoretest.Fault { return objstoretest.Fault{} })
			require.NoError(t, w.Confirm(t.Context()), name)

			s := newTestSequence(mem)
			next, _ := open(t, s)
			if trims {
				slot := put(t, next, "newer")
				_, err = s.Trim(t.Context(), slot, slot, always)
				require.NoError(t, err)
			}
			require.NoError(t, next.Confirm(t.Context()))
			requireFenced(t, w.Confirm(t.Context()), next.Epoch())
			w.mu.Lock() // as of a writer that is putting an entry
			requireFenced(t, w.Confirm(t.Context()), next.Epoch())
			w.mu.Unlock()
		}
	}
}
