package siftbleve

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/index/upsidedown/store/boltdb"
	"github.com/blevesearch/bleve/v2/index/upsidedown/store/goleveldb"
	"github.com/blevesearch/bleve/v2/registry"
	store "github.com/blevesearch/upsidedown_store_api"
	"github.com/stretchr/testify/require"
)

// BenchmarkIndex indexes and searches a corpus on each store: the Go source tree, and the word list if it is
// installed. Per store it reports
//
//	store-s    time in the store while documents are indexed in batches of 100, syncs included: that of
//	           ExecuteBatch and of all reads
//	all-s      time of it all, the analysis of texts included
//	store-ms   time in the store of the searches that the tests make, once each
//	search-ms  time of them all
//	MB         size of its directory, opened once more and closed
//
// CORPUS=net indexes a part of the tree; `-benchtime 1x` once.
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
		for _, storeName := range []string{Name, boltdb.Name, pebbleName, goleveldb.Name} {
			b.Run(name+"/"+storeName, func(b *testing.B) {
				for range b.N {
					benchmarkIndex(b, storeName, docs, map[string]any{})
				}
			})
		}
		b.Run(name+"/"+Name+"-zstd", func(b *testing.B) {
			for range b.N {
				benchmarkIndex(b, Name, docs, map[string]any{"compression": "zstd"})
			}
		})
	}
}

func benchmarkIndex(b *testing.B, storeName string, docs []document, config map[string]any) {
	path := filepath.Join(b.TempDir(), "index")
	index := newIndex(b, path, timed(storeName), config)
	start := time.Now()
	inStore.Store(0)
	fill(b, index, docs, 100)
	b.ReportMetric(time.Since(start).Seconds(), "all-s")
	b.ReportMetric(time.Duration(inStore.Load()).Seconds(), "store-s")

	require.NoError(b, index.Close())
	index, err := bleve.Open(path)
	require.NoError(b, err)
	start = time.Now()
	inStore.Store(0)
	for _, request := range requests() {
		_, err := index.Search(request)
		require.NoError(b, err)
	}
	b.ReportMetric(float64(time.Since(start).Milliseconds()), "search-ms")
	b.ReportMetric(float64(time.Duration(inStore.Load()).Milliseconds()), "store-ms")
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
	b.ReportMetric(float64(size)/1e6, "MB")
	b.ReportMetric(0, "ns/op")
}

// inStore is the time spent in stores whose name is timed, in nanoseconds.
var inStore atomic.Int64

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

func since(start time.Time) { inStore.Add(int64(time.Since(start))) }

type timedStore struct{ store.KVStore }

func (s timedStore) Stats() json.Marshaler    { return nil }
func (s timedStore) StatsMap() map[string]any { return nil }

func (s timedStore) Writer() (store.KVWriter, error) {
	w, err := s.KVStore.Writer()
	return timedWriter{w}, err
}

func (s timedStore) Reader() (store.KVReader, error) {
	r, err := s.KVStore.Reader()
	return timedReader{r}, err
}

type timedWriter struct{ store.KVWriter }

func (w timedWriter) ExecuteBatch(b store.KVBatch) error {
	defer since(time.Now())
	return w.KVWriter.ExecuteBatch(b)
}

type timedReader struct{ store.KVReader }

func (r timedReader) Get(key []byte) ([]byte, error) {
	defer since(time.Now())
	return r.KVReader.Get(key)
}

func (r timedReader) MultiGet(keys [][]byte) ([][]byte, error) {
	defer since(time.Now())
	return r.KVReader.MultiGet(keys)
}

func (r timedReader) PrefixIterator(prefix []byte) store.KVIterator {
	defer since(time.Now())
	return timedIterator{r.KVReader.PrefixIterator(prefix)}
}

func (r timedReader) RangeIterator(start, end []byte) store.KVIterator {
	defer since(time.Now())
	return timedIterator{r.KVReader.RangeIterator(start, end)}
}

type timedIterator struct{ store.KVIterator }

func (i timedIterator) Seek(key []byte) {
	defer since(time.Now())
	i.KVIterator.Seek(key)
}

func (i timedIterator) Next() {
	defer since(time.Now())
	i.KVIterator.Next()
}
