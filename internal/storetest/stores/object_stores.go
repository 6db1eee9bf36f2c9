package stores

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// ConfigOf returns the settings of a store in an object store.
func ConfigOf(o *kv.Options) *objects.Config { return o.Objects.(*objects.Config) }

// OpenObjects opens a store in an object store. Without options its files are small.
func OpenObjects(tb testing.TB, s objstore.Store, o *kv.Options) *kv.DB {
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
	return OpenDir(tb, "", &opts)
}

// OpenObjectsReader opens a view of a store in an object store.
func OpenObjectsReader(tb testing.TB, s objstore.Store) *kv.DB {
	tb.Helper()
	db, err := kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10, Objects: &objects.Config{Store: s}})
	require.NoError(tb, err)
	return db
}

// FarOptions are those of stores that compact nothing by themselves and cache no block.
func FarOptions() *kv.Options {
	return &kv.Options{MemtableSize: 64 << 20, TargetFileSize: 256 << 10, BaseLevelSize: 256 << 10, CacheSize: -1,
		L0CompactionThreshold: 64, MaxConcurrentCompactions: 1, // the same files on all machines
		FalsePositiveMemory: -1, // the second to ask pays what the first did
		SeparateFrom:        -1}
}
