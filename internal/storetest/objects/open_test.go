package objects

import (
	"bytes"
	"context"
	"errors"
	"hash/crc32"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// configOf returns the settings of a store in an object store.
func configOf(o *kv.Options) *objects.Config { return o.Objects.(*objects.Config) }

// openObjects opens a store in an object store. Without options its files are small.
func openObjects(tb testing.TB, s objstore.Store, o *kv.Options) *kv.DB {
	tb.Helper()
	opts := kv.Options{MemtableSize: 64 << 10, TargetFileSize: 64 << 10, BaseLevelSize: 64 << 10}
	if o != nil {
		opts = *o
	}
	opts.Objects = &objects.Config{Store: s, LogInterval: time.Hour, Patience: time.Millisecond}
	tune := harness.Of(&opts).TuneObjects
	harness.Of(&opts).TuneObjects = func(p *objectdir.Params) {
		storetest.ManyEdits(p)
		if tune != nil {
			tune(p)
		}
	}
	return stores.OpenDir(tb, "", &opts)
}

// openObjectsReader opens a view of a store in an object store.
func openObjectsReader(tb testing.TB, s objstore.Store) *kv.DB {
	tb.Helper()
	db, err := kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10, Objects: &objects.Config{Store: s}})
	require.NoError(tb, err)
	return db
}

// remoteOptions are those of stores that compact nothing by themselves and cache no block.
func remoteOptions() *kv.Options {
	return &kv.Options{MemtableSize: 64 << 20, TargetFileSize: 256 << 10, BaseLevelSize: 256 << 10, CacheSize: -1,
		L0CompactionThreshold: 64, MaxConcurrentCompactions: 1, // the same files on all machines
		FalsePositiveMemory: -1, // the second to ask pays what the first did
		SeparateFrom:        -1}
}

// An unconditional store overwrites what it should leave alone.
type unconditional struct{ objstore.Store }

func (s unconditional) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	return s.Put(ctx, key, bytes.NewReader(body), int64(len(body)))
}

// No store is made where two writers could both win, and nothing is left behind.
func TestAnObjectStoreWithoutConditionsIsRefused(t *testing.T) {
	s := objstore.NewMem()
	_, err := kv.Open("", &kv.Options{Objects: &objects.Config{Store: unconditional{s}}})
	require.ErrorIs(t, err, objstore.ErrUnconditional)
	require.Empty(t, bucket(t, s))
}

// An objectState tells whether an object has changed.
type objectState struct{ size, sum int }

// bucket returns all objects by key.
func bucket(t *testing.T, s objstore.Store) map[string]objectState {
	t.Helper()
	objects := map[string]objectState{}
	for o, err := range s.List(t.Context(), "", "") {
		require.NoError(t, err)
		b := make([]byte, o.Size)
		_, err := s.GetRange(t.Context(), o.Key, 0, b)
		if errors.Is(err, objstore.ErrNotExist) {
			continue // it was deleted meanwhile
		}
		require.NoError(t, err)
		objects[o.Key] = objectState{len(b), int(crc32.ChecksumIEEE(b))}
	}
	return objects
}

// fenceSize is the size in bytes of an entry with which a writer takes a store over.
const fenceSize = 80
