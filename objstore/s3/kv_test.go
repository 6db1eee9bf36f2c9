package s3

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
)

// A store of package kv in a real server: two writers in turn, a reader beside them, another gateway.
func TestAStoreInABucket(t *testing.T) {
	v := newServer(t)
	bucket := v.open(t)
	o := &kv.Options{MemtableSize: 64 << 10, TargetFileSize: 64 << 10, BaseLevelSize: 64 << 10,
		Objects: &objects.Config{Store: bucket}}
	want := map[string]string{}
	check := func(db *kv.DB) {
		t.Helper()
		it, err := db.NewIter(nil)
		require.NoError(t, err)
		n := 0
		for ok := it.First(); ok; ok = it.Next() {
			n++
			require.Equal(t, want[string(it.Key())], string(it.Value()))
		}
		require.NoError(t, errors.Join(it.Error(), it.Close()))
		require.Len(t, want, n)
	}
	var before, reader *kv.DB
	for round := range 4 {
		db, err := kv.Open("", o)
		require.NoError(t, err)
		if before != nil {
			require.ErrorIs(t, before.Set([]byte("late"), nil, kv.Sync), objects.ErrFenced)
			require.ErrorIs(t, before.Close(), objects.ErrFenced)
		}
		check(db)
		if reader == nil {
			reader, err = kv.OpenReadOnly("", o)
			require.NoError(t, err)
		}
		rng := rand.New(rand.NewPCG(uint64(round), 17))
		for range 1000 {
			k, value := fmt.Sprintf("%03d", rng.IntN(1000)), fmt.Sprintf("%d-%0*d", round, rng.IntN(300), 7)
			require.NoError(t, db.Set([]byte(k), []byte(value), kv.NoSync))
			want[k] = value
		}
		require.NoError(t, db.Set([]byte("round"), fmt.Append(nil, round), kv.Sync))
		want["round"] = strconv.Itoa(round)
		require.NoError(t, reader.Refresh(context.Background()))
		check(reader)
		before = db
	}
	require.NoError(t, before.Compact(t.Context(), nil, nil))
	require.NoError(t, before.Close())
	require.NoError(t, reader.Refresh(context.Background()))
	check(reader)
	require.NoError(t, reader.Close())
}
