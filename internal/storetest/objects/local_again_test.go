package objects

import (
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/remote/locallog"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// entriesFail makes requests for entries fail from one on, so that their outcome is unknown; they are not performed.
func entriesFail(store objstore.Store, from int) *objstoretest.Faults {
	faults := objstoretest.NewFaults(store, 1)
	var entries atomic.Int64
	faults.Inject(func(c objstoretest.Call) objstoretest.Fault {
		if c.Kind == objstore.PutIfAbsent && strings.HasPrefix(c.Key, "entry/") {
			if entries.Add(1) >= int64(from) {
				return objstoretest.Fault{Outcome: objstoretest.NotPerformed}
			}
		}
		return objstoretest.Fault{}
	})
	return faults
}

// A store whose creation failed before its first list of files was there is created by the next Open, with the same
// directory.
func TestACreationThatFailedIsTriedAgain(t *testing.T) {
	m := newMachines(t)
	mem := m.objects
	m.objects = entriesFail(mem, 3) // after the fence, and another that has to be refused
	m.refused("a", m.options(), objstore.ErrUnknown)
	require.NotEmpty(t, m.files("a"))
	m.objects = mem
	db := m.open("a", m.options())
	putDurably(t, db, "key", "value")
	stores.Crash(t, db)
	db = m.open("a", m.options())
	v, err := db.Get([]byte("key"))
	require.NoError(t, err)
	require.Equal(t, "value", string(v))
	require.NoError(t, db.Close())
}

// Logs that a process had no time to remove when it closed the store are worthless later. The store was opened and
// closed since, on another machine or on this one, with logs on the disk or in the object store.
func TestLogsThatWereNotRemovedAreWorthlessLater(t *testing.T) {
	for _, by := range [][]func(m *machines) *kv.Options{
		{(*machines).options}, {(*machines).remote}, {(*machines).remote, (*machines).options, (*machines).options},
	} {
		m := newMachines(t)
		db := m.open("a", m.options())
		putDurably(t, db, "key", "value")
		left := storetest.CopyDir(t, m.disks, "a")
		require.NotEmpty(t, m.logs("a"))
		require.NoError(t, db.Close())
		require.Empty(t, m.files("a"))
		for _, o := range by {
			db = m.open("b", o(m))
			putDurably(t, db, "more", "value")
			require.NoError(t, db.Close())
		}
		left()
		require.NotEmpty(t, m.logs("a"))
		db = m.open("a", m.options())
		require.Len(t, m.logs("a"), 1, "a new one")
		storetest.RequireContents(t, storetest.Model{"key": "value", "more": "value"}, db)
		require.NoError(t, db.Close())
	}
}

// A log on a local disk belongs to one branch: the parent's stays where it is, and the clone's is needed by the clone
// alone.
func TestBranchesWithLocalLogs(t *testing.T) {
	m := newMachines(t)
	clone := func() *kv.Options {
		o := m.options()
		configOf(o).Branch = "clone"
		return o
	}
	db := m.open("a", m.options())
	want := storetest.Model{}
	for i := range 100 {
		k := fmt.Sprintf("%05d", i)
		require.NoError(t, db.Set([]byte(k), []byte("flushed"), kv.NoSync))
		want[k] = "flushed"
	}
	require.NoError(t, db.Flush(t.Context()))
	inClone := maps.Clone(want)
	putDurably(t, db, "late", "in the log")
	want["late"] = "in the log"
	require.NoError(t, configOf(m.options()).Clone(t.Context(), "clone"))
	m.refused("a", clone(), kv.ErrLocked)
	other := m.open("b", clone())
	storetest.RequireContents(t, inClone, other)
	putDurably(t, other, "own", "way")
	inClone["own"] = "way"
	putDurably(t, db, "goes", "on")
	want["goes"] = "on"
	stores.Crash(t, other)
	stores.Crash(t, db)
	elsewhere := clone()
	configOf(elsewhere).LocalLog = false
	require.ErrorContains(t, m.refused("c", elsewhere, objects.ErrLogElsewhere), locallog.PlaceOf("b"))
	require.ErrorContains(t, m.refused("c", m.remote(), objects.ErrLogElsewhere), locallog.PlaceOf("a"))
	other, db = m.open("b", clone()), m.open("a", m.options())
	storetest.RequireContents(t, inClone, other)
	storetest.RequireContents(t, want, db)
	require.NoError(t, other.Close())
	require.NoError(t, db.Close())
	other = m.open("c", elsewhere)
	storetest.RequireContents(t, inClone, other)
	require.NoError(t, other.Close())
}
