package siftbleve

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	"github.com/blevesearch/bleve/v2/index/upsidedown/store/boltdb"
	"github.com/blevesearch/bleve/v2/index/upsidedown/store/goleveldb"
	"github.com/blevesearch/bleve/v2/registry"
	store "github.com/blevesearch/upsidedown_store_api"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/turns"
)

// BenchmarkIndex indexes and searches a corpus with each store, and with scorch, in turns: the Go source tree, and the
// word list if it is installed. It prints for each
//
//	index      processor time of indexing in batches of 100, and of closing the index, which ends all other work
//	batches    that of ExecuteBatch, in nanoseconds as all of these; scorch has no store
//	clock      ExecuteBatch by the clock, with its syncs
//	search     processor time of opening the index, and of the searches that the tests make, once each
//	size       of its directory in bytes
//
// CORPUS=net indexes a part of the tree; `-benchtime 5x` makes five rounds.
func BenchmarkIndex(b *testing.B) {
	corpora := map[string]func(t testing.TB) []document{"go": func(t testing.TB) []document {
		if part := os.Getenv("CORPUS"); part != "" {
			return goSources(t, part)
		}
		return goSources(t)
	}}
	if _, err := os.Stat("/usr/share/dict/words"); err == nil {
		corpora["words"] = words
	}
	for name, corpus := range corpora {
		docs := corpus(b)
		b.Run(name, func(b *testing.B) {
			var t turns.Table
			others := []string{pebbleName, goleveldb.Name, boltdb.Name, scorch.Name, zstd}
			for range b.N {
				for _, store := range append([]string{Name}, others...) {
					benchmarkIndex(b, &t, store, docs)
				}
			}
			t.Print(b, Name, others...)
		})
	}
}

// zstd is a store of this package that compresses more.
const zstd = "siftkv-zstd"

func benchmarkIndex(b *testing.B, t *turns.Table, name string, docs []document) {
	path, config, store := filepath.Join(b.TempDir(), "index"), map[string]any{}, name
	if name == zstd {
		store, config["compression"] = Name, "zstd"
	}
	var index bleve.Index
	var err error
	if name == scorch.Name {
		index, err = bleve.NewUsing(path, goMapping(), scorch.Name, scorch.Name, nil)
		require.NoError(b, err)
	} else {
		index = newIndex(b, path, timed(store), config)
	}
	inStore, onClock = 0, 0
	t.Measure(name, "index", 1, func() {
		fill(b, index, docs, 100)
		require.NoError(b, index.Close())
	})
	if name != scorch.Name {
		t.Add(name, "batches", inStore)
		t.Add(name, "clock", onClock)
	}
	t.Measure(name, "search", 1, func() {
		index, err = bleve.Open(path)
		require.NoError(b, err)
		for _, request := range requests() {
			_, err := index.Search(request)
			require.NoError(b, err)
		}
	})
	require.NoError(b, index.Close())
	size := int64(0)
	require.NoError(b, fs.WalkDir(os.DirFS(path), ".", func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		size += info.Size()
		return err
	}))
	t.Add(name, "size", float64(size))
}

// inStore is the processor time of ExecuteBatch in stores whose name is timed, and onClock its time by the clock, in
// nanoseconds. Nothing else runs then but the store's work in the background.
var inStore, onClock float64

// timed registers a store once more, with a clock.
func timed(name string) string {
	timedName := "timed-" + name
	if registry.KVStoreConstructorByName(timedName) != nil {
		return timedName
	}
	open := registry.KVStoreConstructorByName(name)
	err := registry.RegisterKVStore(timedName, func(mo store.MergeOperator, c map[string]any) (store.KVStore, error) {
		s, err := open(mo, c)
		return timedStore{s}, err
	})
	if err != nil {
		panic(err)
	}
	return timedName
}

type timedStore struct{ store.KVStore }

func (s timedStore) Stats() json.Marshaler    { return nil }
func (s timedStore) StatsMap() map[string]any { return nil }

func (s timedStore) Writer() (store.KVWriter, error) {
	w, err := s.KVStore.Writer()
	return timedWriter{w}, err
}

type timedWriter struct{ store.KVWriter }

func (w timedWriter) ExecuteBatch(b store.KVBatch) error {
	spent, start := turns.ProcessorTime(), time.Now()
	err := w.KVWriter.ExecuteBatch(b)
	inStore += float64(turns.ProcessorTime() - spent)
	onClock += float64(time.Since(start))
	return err
}
