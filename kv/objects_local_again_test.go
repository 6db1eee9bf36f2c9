package kv

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// entriesFail makes requests for entries fail from one on, so that nobody knows of them; they are not performed.
func entriesFail(store objstore.Store, from int) *objstoretest.Faults {
	faults := objstoretest.NewFaults(store, 1)
	entries := 0
	faults.Inject(func(c objstoretest.Call) objstoretest.Fault {
		if c.Kind == objstore.PutIfAbsent && strings.HasPrefix(c.Key, "entry/") {
			if entries++; entries >= from {
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
	crash(t, db)
	db = m.open("a", m.options())
	v, err := db.Get([]byte("key"))
	require.NoError(t, err)
	require.Equal(t, "value", string(v))
	require.NoError(t, db.Close())
}
