package siftbleve

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/blevesearch/bleve/v2"
	_ "github.com/blevesearch/bleve/v2/analysis/analyzer/keyword" // used below
	"github.com/blevesearch/bleve/v2/index/upsidedown"
	"github.com/blevesearch/bleve/v2/index/upsidedown/store/boltdb"
	"github.com/blevesearch/bleve/v2/mapping"
	store "github.com/blevesearch/upsidedown_store_api"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
)

// goMapping has the text of files analyzed, packages as they are, and numbers.
func goMapping() mapping.IndexMapping {
	m := bleve.NewIndexMapping()
	pkg := bleve.NewTextFieldMapping()
	pkg.Analyzer = "keyword"
	text := bleve.NewTextFieldMapping()
	text.Store = false
	m.DefaultMapping.AddFieldMappingsAt("package", pkg)
	m.DefaultMapping.AddFieldMappingsAt("text", text)
	m.DefaultMapping.AddFieldMappingsAt("lines", bleve.NewNumericFieldMapping())
	return m
}

func newIndex(t testing.TB, path, storeName string, config map[string]any) bleve.Index {
	index, err := bleve.NewUsing(path, goMapping(), upsidedown.Name, storeName, config)
	require.NoError(t, err)
	return index
}

// fill indexes documents in batches of a size.
func fill(t testing.TB, index bleve.Index, docs []document, size int) {
	for len(docs) > 0 {
		b := index.NewBatch()
		for _, d := range docs[:min(size, len(docs))] {
			require.NoError(t, b.Index(d.ID, d))
		}
		require.NoError(t, index.Batch(b))
		docs = docs[min(size, len(docs)):]
	}
}

// requests are searches of every kind that reads a store in a way of its own.
func requests() (all []*bleve.SearchRequest) {
	term := bleve.NewTermQuery("strings")
	term.SetField("package")
	most, least := 500.0, 100.0
	lines := bleve.NewNumericRangeQuery(&least, &most)
	lines.SetField("lines")
	fuzzy := bleve.NewFuzzyQuery("bufer")
	fuzzy.SetField("text")
	prefix := bleve.NewPrefixQuery("comp")
	prefix.SetField("text")
	wildcard := bleve.NewWildcardQuery("un*ed")
	wildcard.SetField("text")
	regexp := bleve.NewRegexpQuery("sort[a-z]+")
	regexp.SetField("text")
	boolean := bleve.NewBooleanQuery()
	boolean.AddMust(bleve.NewMatchQuery("slice"))
	boolean.AddMustNot(bleve.NewMatchQuery("benchmark"))
	boolean.AddShould(bleve.NewMatchQuery("heap"))
	for _, q := range []bleve.SearchRequest{
		*bleve.NewSearchRequest(term),
		*bleve.NewSearchRequest(lines),
		*bleve.NewSearchRequest(fuzzy),
		*bleve.NewSearchRequest(prefix),
		*bleve.NewSearchRequest(wildcard),
		*bleve.NewSearchRequest(regexp),
		*bleve.NewSearchRequest(boolean),
		*bleve.NewSearchRequest(bleve.NewMatchQuery("a reader returns the number of bytes")),
		*bleve.NewSearchRequest(bleve.NewMatchPhraseQuery("the end of file")),
		*bleve.NewSearchRequest(bleve.NewQueryStringQuery("+lines:>200 text:unicode -package:strings")),
		*bleve.NewSearchRequest(bleve.NewMatchAllQuery()),
		*bleve.NewSearchRequest(bleve.NewMatchQuery("thereisnosuchword")),
	} {
		q.Size = 50
		q.Fields = []string{"*"}
		q.SortBy([]string{"-_score", "_id"})
		q.AddFacet("packages", bleve.NewFacetRequest("package", 5))
		all = append(all, &q)
	}
	return all
}

// answers returns all that an index says to the requests, as text.
func answers(t testing.TB, index bleve.Index) (all []string) {
	total, hits := uint64(0), 0
	for _, request := range requests() {
		result, err := index.Search(request)
		require.NoError(t, err)
		require.Zero(t, result.Status.Failed)
		total += result.Total
		hits += len(result.Hits)
		var text strings.Builder
		fmt.Fprint(&text, result.Total, " ")
		for _, hit := range result.Hits {
			fields, err := json.Marshal(hit.Fields)
			require.NoError(t, err)
			fmt.Fprintf(&text, "%s %.9f %s\n", hit.ID, hit.Score, fields)
		}
		facets, err := json.Marshal(result.Facets)
		require.NoError(t, err)
		all = append(all, text.String()+string(facets))
	}
	require.Positive(t, total)
	require.Positive(t, hits)
	for _, field := range []string{"text", "package"} {
		dict, err := index.FieldDict(field)
		require.NoError(t, err)
		var text strings.Builder
		for entry, err := dict.Next(); entry != nil; entry, err = dict.Next() {
			require.NoError(t, err)
			fmt.Fprintf(&text, "%s:%d ", entry.Term, entry.Count)
		}
		require.NoError(t, dict.Close())
		require.Positive(t, text.Len())
		all = append(all, text.String())
	}
	count, err := index.DocCount()
	require.NoError(t, err)
	return append(all, strconv.FormatUint(count, 10))
}

// storeOf returns the store below an index.
func storeOf(t testing.TB, index bleve.Index) store.KVStore {
	advanced, err := index.Advanced()
	require.NoError(t, err)
	s, err := advanced.(*upsidedown.UpsideDownCouch).Advanced()
	require.NoError(t, err)
	return s
}

// TestTheHostsAnswers indexes a part of the Go source tree in a store of each kind, changes and deletes documents, and
// has them answer alike: with what is in memory, in files, opened again, opened read-only and compacted.
func TestTheHostsAnswers(t *testing.T) {
	docs := goSources(t, "sort", "strings", "bufio", "container", "errors", "io")
	require.Greater(t, len(docs), 40)
	dir := t.TempDir()
	ours, usual := filepath.Join(dir, "ours"), filepath.Join(dir, "usual")
	config := map[string]any{"memtable_size": 256 << 10, "memory_limit": 32 << 20, "filter": "blocked:12"}
	indexes := []bleve.Index{
		newIndex(t, usual, boltdb.Name, nil),
		newIndex(t, ours, Name, config),
		newIndex(t, filepath.Join(dir, "pebble"), pebbleName, nil),
		newIndex(t, "", Name, map[string]any{"in_memory": true}),
	}
	same := func(indexes ...bleve.Index) {
		t.Helper()
		want := answers(t, indexes[0])
		for _, index := range indexes[1:] {
			for i, answer := range answers(t, index) {
				require.Equal(t, want[i], answer)
			}
		}
	}
	for _, index := range indexes {
		fill(t, index, docs, 20)
	}
	same(indexes...)
	before := answers(t, indexes[0])

	for _, index := range indexes { // some with another text, some gone, one of these back again
		for i, d := range docs {
			switch i % 5 {
			case 0:
				require.NoError(t, index.Delete(d.ID))
			case 1:
				d.Text = docs[(i+7)%len(docs)].Text
				require.NoError(t, index.Index(d.ID, d))
			}
		}
		require.NoError(t, index.Index(docs[5].ID, docs[5]))
		require.NoError(t, index.SetInternal([]byte("internal"), []byte("value")))
	}
	same(indexes...)
	require.NotEqual(t, before, answers(t, indexes[0]))
	require.Positive(t, storeOf(t, indexes[1]).(*Store).DB().Metrics().Flushes, "some of it is in files")
	require.Contains(t, indexes[1].StatsMap()["index"].(map[string]any)["kv"], "wal_syncs")

	// Terms without documents weigh in searches for many terms. Both stores drop them.
	require.NoError(t, storeOf(t, indexes[0]).(*boltdb.Store).Compact())
	require.NoError(t, storeOf(t, indexes[1]).(*Store).Compact())
	same(indexes[0], indexes[1])
	require.NoError(t, indexes[1].Close())
	again, err := bleve.Open(ours)
	require.NoError(t, err)
	same(indexes[0], again)
	value, err := again.GetInternal([]byte("internal"))
	require.NoError(t, err)
	require.Equal(t, "value", string(value))
	_, err = bleve.Open(ours)
	require.ErrorIs(t, err, kv.ErrLocked)
	require.NoError(t, again.Close())
	readOnly, err := bleve.OpenUsing(ours, map[string]any{"read_only": true})
	require.NoError(t, err)
	same(indexes[0], readOnly)
	require.ErrorIs(t, readOnly.Delete(docs[1].ID), kv.ErrReadOnly)
	for _, index := range []bleve.Index{indexes[0], indexes[2], indexes[3], readOnly} {
		require.NoError(t, index.Close())
	}
}

// TestTheHostMakesNoIndexTwice has errors of the store come through bleve.
func TestTheHostMakesNoIndexTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index")
	_, err := bleve.NewUsing(path, goMapping(), upsidedown.Name, Name, map[string]any{"filter": "nonsense"})
	require.ErrorIs(t, err, ErrConfig)
	path += "2"
	require.NoError(t, newIndex(t, path, Name, nil).Close())
	_, err = bleve.NewUsing(path, goMapping(), upsidedown.Name, Name, nil)
	require.ErrorIs(t, err, bleve.ErrorIndexPathExists)
}
