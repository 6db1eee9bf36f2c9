package objects

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

func TestAStoreInAnObjectStore(t *testing.T) {
	t.Parallel()
	s := objstore.NewMem()
	db := openObjects(t, s, nil)
	want := storetest.Model{}
	for i := range 3000 {
		k, v := fmt.Sprintf("%05d", i), fmt.Sprintf("%0100d", i)
		require.NoError(t, db.Set([]byte(k), []byte(v), kv.NoSync))
		want[k] = v
	}
	storetest.RequireContents(t, want, db)
	require.NoError(t, db.Close())
	for range 3 {
		db = openObjects(t, s, nil)
		storetest.RequireContents(t, want, db)
		require.NoError(t, db.Set([]byte("more"), nil, kv.Sync))
		want["more"] = ""
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		require.NoError(t, db.Close())
	}
}

// What was acknowledged with Sync is there for the writer that takes the store over, and the one before
// acknowledges nothing more.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	s := objstore.NewMem()
	want := storetest.Model{}
	var before *kv.DB
	for round := range 20 {
		db := openObjects(t, s, nil)
		if before != nil {
			require.ErrorIs(t, before.Set([]byte("late"), nil, kv.Sync), objects.ErrFenced)
			require.ErrorIs(t, before.Flush(t.Context()), objects.ErrFenced)
			require.ErrorIs(t, before.Close(), objects.ErrFenced)
		}
		storetest.RequireContents(t, want, db)
		rng := rand.New(rand.NewPCG(uint64(round), 14))
		for i := range rng.IntN(500) {
			k, v := fmt.Sprintf("%03d", rng.IntN(1000)), fmt.Sprintf("%d-%0*d", round, rng.IntN(500), i)
			require.NoError(t, db.Set([]byte(k), []byte(v), kv.NoSync))
			want[k] = v
		}
		require.NoError(t, db.Set([]byte("round"), fmt.Append(nil, round), kv.Sync))
		want["round"] = strconv.Itoa(round)
		before = db
	}
	require.NoError(t, before.Close())
}

// dead is the rule of a process that is no more: no request is sent, and none is tried again.
func dead(objstoretest.Call) objstoretest.Fault {
	return objstoretest.Fault{Outcome: objstoretest.NotPerformed, Err: objstore.ErrClosed}
}

// A process that dies loses what it had not synced, and leaves a store.
func TestTakeOverFromTheDead(t *testing.T) {
	t.Parallel()
	s := objstore.NewMem()
	want := storetest.Model{}
	for round := range scale.Fewer(20, 6) {
		faults := objstoretest.NewFaults(s, 1)
		db := openObjects(t, faults, nil)
		storetest.RequireContents(t, want, db)
		rng := rand.New(rand.NewPCG(uint64(round), 15))
		for i := range rng.IntN(2000) {
			k, v := fmt.Sprintf("%03d", rng.IntN(1000)), fmt.Sprintf("%d-%0*d", round, rng.IntN(300), i)
			require.NoError(t, db.Set([]byte(k), []byte(v), kv.Async))
			want[k] = v
		}
		require.NoError(t, db.Set([]byte("round"), fmt.Append(nil, round), kv.Sync))
		want["round"] = strconv.Itoa(round)
		faults.Inject(dead)
		require.Error(t, db.Set([]byte("lost"), nil, kv.Sync))
		require.Error(t, db.Close())
	}
}

// A store that is there is not opened through a client that ignores conditions, and stays as it is.
func TestAStoreIsNotOpenedWhereConditionsAreIgnored(t *testing.T) {
	s := objstore.NewMem()
	db, want := objectsWith(t, s, 10)
	require.NoError(t, db.Close())
	_, err := kv.Open("", &kv.Options{Objects: &objects.Config{Store: unconditional{s}}})
	require.ErrorIs(t, err, objstore.ErrUnconditional)
	db = openObjects(t, s, nil)
	storetest.RequireContents(t, want, db)
	require.NoError(t, db.Close())
}

func TestObjectsOptions(t *testing.T) {
	for name, o := range map[string]*kv.Options{
		"nil":         {Objects: &objects.Config{}},
		"InMemory":    {InMemory: true, Objects: &objects.Config{Store: objstore.NewMem()}},
		"MemoryMap":   {MemoryMap: true, Objects: &objects.Config{Store: objstore.NewMem()}},
		"LogInterval": {Objects: &objects.Config{Store: objstore.NewMem(), LogInterval: -1}},
		"LogBuffer":   {Objects: &objects.Config{Store: objstore.NewMem(), LogBuffer: -1}},
		"CacheSize":   {Objects: &objects.Config{Store: objstore.NewMem(), CacheSize: -1}},
	} {
		_, err := kv.Open(t.TempDir(), o)
		require.ErrorIs(t, err, kv.ErrInvalidOptions, name)
		require.ErrorContains(t, err, name)
	}
}
