package remote

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/remote/branch"
	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/sequence"
	"github.com/siftkv/siftkv/internal/sequence/sequencetest"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// shortEdits has short lists put as edits, up to three behind each whole one.
var shortEdits = filelist.EditLimits{Percent: 1 << 20, Each: 1, Max: 3}

// A chainWriter publishes a list after each record.
type chainWriter struct {
	*node
	mem objstore.Store
}

func newChainWriter(t *testing.T, edits int) *chainWriter {
	mem := objstore.NewMem()
	limits := shortEdits
	limits.Max = edits
	n, err := openNode(t.Context(), t, mem, LogOptions{Interval: -1, Edits: limits}, false)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.logs.Close()) })
	return &chainWriter{n, mem}
}

// publish writes records, each of which is an entry and then in a list.
func (w *chainWriter) publish(n int) {
	for range n {
		require.NoError(w.t, w.write(uint64(len(w.records))))
		require.NoError(w.t, w.log.Sync())
		require.NoError(w.t, w.flush(w.t.Context()))
	}
}

// slots returns where the newest list is read from.
func (w *chainWriter) slots() []uint64 {
	w.logs.mu.Lock()
	defer w.logs.mu.Unlock()
	return w.logs.chain.Slots
}

// trim deletes what neither the newest list nor its log needs.
func (w *chainWriter) trim() {
	slots := w.slots()
	last := slots[len(slots)-1]
	_, err := w.seq.Trim(w.t.Context(), last, last, time.Now().Add(time.Hour), slots...)
	require.NoError(w.t, err)
}

func TestListsArePutAsEditsWithinLimits(t *testing.T) {
	w := newChainWriter(t, 3)
	require.Equal(t, []uint64{2}, w.slots())
	w.publish(2)
	require.Equal(t, []uint64{2, 4, 6}, w.slots())
	w.publish(1)
	require.Equal(t, []uint64{2, 4, 6, 8}, w.slots())
	w.publish(1)
	require.Equal(t, []uint64{10}, w.slots(), "three edits are enough")
	w.publish(1)
	w.logs.whole.Store(true)
	w.publish(1)
	require.Equal(t, []uint64{14}, w.slots(), "the store is being closed")
}

// Readers need what a list is an edit of, and nothing else from before it.
func TestAListIsReadFromItsChain(t *testing.T) {
	var c objstore.Counters
	w := newChainWriter(t, 100)
	requireView := func(cost string, v *viewer) {
		t.Helper()
		sequencetest.RequireCost(t, &c, cost, func() {
			records, err := v.read()
			require.NoError(t, err)
			require.Equal(t, w.records, records)
		})
	}
	open := func() *viewer {
		v := newViewer(t, objstore.WithCounters(w.mem, &c))
		t.Cleanup(func() { require.NoError(t, v.f.Close()) })
		return v
	}
	w.publish(6)
	w.trim()
	require.Len(t, w.slots(), 7)
	require.Equal(t, 1+7, count(t, w.mem, "entry/"), "a fence, and the chain")
	view := open()
	requireView("get 7, list 1", view)
	requireView("get 1", view)

	// It goes on from what it has: step by step, and by a listing.
	w.publish(1)
	requireView("get 3", view)
	w.publish(5)
	w.trim()
	view.f.LookAgain()
	requireView("get 6, list 1", view)
	requireView("get 13, list 1", open())
	require.Equal(t, 1+13, count(t, w.mem, "entry/"))

	s := eager(sequence.New(objstore.WithCounters(w.mem, &c), "entry/", sequence.Options{}))
	sequencetest.RequireCost(t, &c, "get 13, put-if-absent 2, list 2", func() {
		logs, st, found, err := openAll(t.Context(), s, LogOptions{})
		require.NoError(t, err)
		require.NoError(t, logs.Close())
		require.Equal(t, w.records, decodeRecords(t, st.List.Manifest))
		require.Empty(t, found)
	})
}

// An entry of a chain that is missing, damaged or another is named.
func TestABrokenChainIsNamed(t *testing.T) {
	other := newChainWriter(t, 3)
	other.publish(2)
	for name, put := range map[string]func(w *chainWriter, slot uint64, key string) []byte{
		"missing": func(*chainWriter, uint64, string) []byte { return nil },
		"damaged": func(w *chainWriter, _ uint64, key string) []byte {
			b := make([]byte, 1<<10)
			n, _ := w.mem.GetRange(t.Context(), key, 0, b)
			b[n-10]++
			return b[:n]
		},
		"a fence": func(w *chainWriter, slot uint64, _ string) []byte {
			return w.seq.Encode(sequence.Entry{Slot: slot, Epoch: slot, Fence: true})
		},
		"without a list": func(w *chainWriter, slot uint64, _ string) []byte {
			b := filelist.Body{ListSlot: 1}
			return w.seq.Encode(sequence.Entry{Slot: slot, Epoch: 1, Store: w.seq.Store(), Body: b.Encode()})
		},
		"of another chain": func(w *chainWriter, slot uint64, _ string) []byte {
			list, limits := emptyList(), filelist.EditLimits{Percent: 1000, Each: 1, Max: 9}
			chain, b := (&filelist.Chain{}).Publish(&filelist.Body{}, 1, list, true, limits), filelist.Body{}
			chain.Publish(&b, slot, list, false, limits)
			require.NotNil(t, b.Edit)
			return w.seq.Encode(sequence.Entry{Slot: slot, Epoch: 1, Store: w.seq.Store(), Body: b.Encode()})
		},
	} {
		for link := range 4 {
			if link == 3 && name != "damaged" {
				continue // no later entry needs it
			}
			w := newChainWriter(t, 3)
			w.publish(3)
			slot := w.slots()[link]
			key := w.seq.Key(slot)
			object := put(w, slot, key)
			require.NoError(t, w.mem.Delete(t.Context(), key))
			if object != nil {
				require.NoError(t, w.mem.PutIfAbsent(t.Context(), key, object))
			}
			what := fmt.Sprint(name, " ", link)
			view := newViewer(t, w.mem)
			_, err := view.read()
			require.ErrorIs(t, err, base.ErrCorruption, what)
			require.ErrorContains(t, err, key, what)
			require.NoError(t, view.f.Close())
			_, _, _, err = openAll(t.Context(), eager(sequence.New(w.mem, "entry/", sequence.Options{})), LogOptions{})
			require.ErrorIs(t, err, base.ErrCorruption, what)
			require.ErrorContains(t, err, key, what)
		}
	}
}

// What is collected next to a writer leaves the chain of the newest list.
func TestACollectionKeepsTheChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := objstore.NewMem()
		o := jobOptions(store)
		j := beginJob(t, o)
		l, err := manifest.Create(j.f, objectdir.Root, 1, &manifest.Edit{StoreID: 1, LogNum: 1})
		require.NoError(t, err)
		for num := range uint64(3) {
			require.NoError(t, writeModelTable(j.f, 10+num))
			require.NoError(t, l.Append(&manifest.Edit{Added: []manifest.AddedTable{{Table: modelTable(10 + num)}}}))
		}
		chain := j.f.asWriter().logs.chain.Slots
		require.Len(t, chain, 4)
		time.Sleep(time.Hour) // the writer has collected
		got, err := branch.Collect(t.Context(), o.Options)
		require.NoError(t, err)
		require.Zero(t, got)
		require.Equal(t, 1+4, count(t, store, "entry/"), "a fence, and the chain")
		now, err := branch.ReadSnapshot(t.Context(), branch.NewSet(o.Options).Sequence("", 0))
		require.NoError(t, err)
		require.Len(t, now.List.Files, 3)
		require.NoError(t, l.Close())
		j.end(t)
	})
}

// A view that cannot read a later list has the files of the one before.
func TestAViewKeepsItsFilesWhereAChainIsBroken(t *testing.T) {
	store := objstore.NewMem()
	o := jobOptions(store)
	o.Logs.Edits.Max = 8
	j := beginJob(t, o)
	l, err := manifest.Create(j.f, objectdir.Root, 1, &manifest.Edit{StoreID: 1, LogNum: 1})
	require.NoError(t, err)
	add := func(num uint64) {
		require.NoError(t, writeModelTable(j.f, num))
		require.NoError(t, l.Append(&manifest.Edit{Added: []manifest.AddedTable{{Table: modelTable(num)}}}))
	}
	add(10)
	view := NewFS(o)
	_, err = view.Open(view.join(manifest.CurrentName))
	require.NoError(t, err)
	require.NoError(t, j.f.Remove(j.f.path(manifest.FileTable, 10)))
	add(11)
	add(12)
	slots := j.f.asWriter().logs.chain.Slots
	key := view.seq.Key(slots[len(slots)-1])
	add(13)
	require.NoError(t, store.Delete(t.Context(), key))
	view.LookAgain()
	_, err = view.Open(view.join(manifest.CurrentName))
	require.ErrorIs(t, err, base.ErrCorruption)
	require.ErrorContains(t, err, key)
	_, there := view.stored(manifest.FileTable, 10)
	require.True(t, there)
	_, there = view.stored(manifest.FileTable, 12)
	require.False(t, there)
	require.NoError(t, errors.Join(view.Close(), l.Close()))
	j.end(t)
}

// An edit whose publication has an unknown outcome is what the next one begins with, if it is there.
func TestEditsOfUnknownOutcome(t *testing.T) {
	for _, outcome := range brokenOutcomes {
		b := newBrokenLine(t)
		b.logs.opts.Edits = shortEdits
		publish(t, b.logs, 5)
		require.Len(t, b.logs.chain.Slots, 2, "an edit")
		for i := range uint64(3) {
			b.breaks(outcome, func() error {
				_, err := b.logs.Publish(needing(t, 6+i))
				return err
			})
		}
		six, err := b.logs.Create(20)
		require.NoError(t, err)
		b.write(six, "twenty")
		require.NoError(t, six.Sync())
		publish(t, b.logs, 10)
		b.requireLogs(10, filelist.Log{Number: 20, Data: []byte("twenty")})
	}
}

// An edit that was refused is nowhere, and the next is one of the list before.
func TestAnEditThatWasRefusedIsNowhere(t *testing.T) {
	b := newBrokenLine(t)
	b.logs.opts.Edits = shortEdits
	b.faults.Inject(func(objstoretest.Call) objstoretest.Fault {
		return objstoretest.Fault{Outcome: objstoretest.NotPerformed, Err: objstore.ErrClosed}
	})
	_, err := b.logs.Publish(needing(t, 6))
	require.ErrorIs(t, err, objstore.ErrClosed)
	b.faults.Inject(func(objstoretest.Call) objstoretest.Fault { return objstoretest.Fault{} })
	before := slices.Clone(b.logs.chain.Slots)
	slot := publish(t, b.logs, 5)
	require.Equal(t, append(before, slot), b.logs.chain.Slots)
	b.requireLogs(5, filelist.Log{Number: 5, Data: []byte("five ")})
}
