package remote

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/sequence"
	"github.com/siftkv/siftkv/internal/sequence/sequencetest"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// shortEdits has short lists put as edits, up to three behind each whole one.
var shortEdits = EditLimits{Percent: 1 << 20, Each: 1, Max: 3}

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
	return w.logs.chain.slots
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

	limits := EditLimits{}.withDefaults()
	for name, c := range map[string]struct {
		whole, before, edits, size int
		want                       bool
	}{
		"a short list":         {16<<10 - 1, 0, 0, 100, false},
		"one edit of it":       {16 << 10, 0, 0, 100, true},
		"a second":             {16 << 10, 1, 100, 100, false},
		"a quarter":            {64 << 10, 3, 16<<10 - 100, 100, true},
		"more than a quarter":  {64 << 10, 3, 16<<10 - 100, 101, false},
		"the last of a chain":  {64 << 20, 255, 0, 100, true},
		"a chain that is long": {64 << 20, 256, 0, 100, false},
	} {
		chain := listChain{slots: make([]uint64, 1+c.before), whole: c.whole, edits: c.edits}
		require.Equal(t, c.want, chain.allows(c.size, limits), name)
	}
}

// A flush of a store with many files publishes little, on average with the whole lists.
func TestPublicationsOfManyFilesAreSmall(t *testing.T) {
	files := scale.Count(10_000, 100_000)
	const perFile, perEdit, flushes = 100, 150, 300 // bytes of the manifest, and publications
	list := &fileList{current: sampleList(t).current, manifest: make([]byte, perFile*files),
		files: map[uint64]file{}}
	list.manifest = slices.Grow(list.manifest, perEdit*flushes)
	for num := range uint64(files) {
		list.files[1+num] = file{author: author{epoch: 1, nonce: 1}, size: 64 << 20}
	}
	var chain listChain
	limits, bytes, longest := EditLimits{}.withDefaults(), 0, 0
	for slot := range uint64(flushes) {
		b := body{}
		chain = chain.publish(&b, 1+slot, list, false, limits)
		bytes += b.size()
		longest = max(longest, len(chain.slots))
		next := *list
		next.manifest = append(next.manifest, make([]byte, perEdit)...)
		next.files = maps.Clone(next.files)
		next.files[uint64(files)+1+slot] = file{author: author{epoch: 1, nonce: 1}, size: 1000}
		list = &next
	}
	t.Logf("%d files: %d bytes for each of %d publications, %d slots", files, bytes/flushes, flushes, longest)
	require.Less(t, bytes/flushes, 64<<10)
	require.LessOrEqual(t, longest, 257)
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
		require.Equal(t, w.records, decodeRecords(t, st.list.manifest))
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
			b := body{lists: 1}
			return w.seq.Encode(sequence.Entry{Slot: slot, Epoch: 1, Store: w.seq.Store(), Body: b.encode()})
		},
		"of another chain": func(w *chainWriter, slot uint64, _ string) []byte {
			e, ok := newListEdit(sampleList(t), sampleList(t))
			require.True(t, ok)
			e.chain, e.list.logStart = []uint64{1}, 0
			b := body{lists: slot, edit: e.encode()}
			return w.seq.Encode(sequence.Entry{Slot: slot, Epoch: 1, Store: w.seq.Store(), Body: b.encode()})
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
		l, err := manifest.Create(j.f, j.f.o.Root, 1, &manifest.Edit{StoreID: 1, LogNum: 1})
		require.NoError(t, err)
		for num := range uint64(3) {
			require.NoError(t, writeModelTable(j.f, 10+num))
			require.NoError(t, l.Append(&manifest.Edit{Added: []manifest.AddedTable{{Table: modelTable(10 + num)}}}))
		}
		chain := j.f.asWriter().logs.chain.slots
		require.Len(t, chain, 4)
		time.Sleep(time.Hour) // the writer has collected
		got, err := Collect(t.Context(), o)
		require.NoError(t, err)
		require.Zero(t, got)
		require.Equal(t, 1+4, count(t, store, "entry/"), "a fence, and the chain")
		now, err := readSaved(t.Context(), newFamily(o).sequence("", 0))
		require.NoError(t, err)
		require.Len(t, now.list.files, 3)
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
	l, err := manifest.Create(j.f, j.f.o.Root, 1, &manifest.Edit{StoreID: 1, LogNum: 1})
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
	slots := j.f.asWriter().logs.chain.slots
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
		require.Len(t, b.logs.chain.slots, 2, "an edit")
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
		b.requireLogs(10, Log{20, []byte("twenty")})
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
	before := slices.Clone(b.logs.chain.slots)
	slot := publish(t, b.logs, 5)
	require.Equal(t, append(before, slot), b.logs.chain.slots)
	b.requireLogs(5, Log{5, []byte("five ")})
}
