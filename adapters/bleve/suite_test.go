package siftbleve

import (
	"testing"

	store "github.com/blevesearch/upsidedown_store_api"
	suite "github.com/blevesearch/upsidedown_store_api/test"
	"github.com/stretchr/testify/require"
)

// open returns a store, which is closed when the test ends.
func open(t testing.TB, mo store.MergeOperator, config map[string]any) *Store {
	t.Helper()
	s, err := New(mo, config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s.(*Store)
}

// TestSuite runs all tests that bleve has for stores, on disk and in memory.
func TestSuite(t *testing.T) {
	tests := map[string]func(t *testing.T, s store.KVStore){
		"KVCrud":             suite.CommonTestKVCrud,
		"ReaderIsolation":    suite.CommonTestReaderIsolation,
		"ReaderOwnsGetBytes": suite.CommonTestReaderOwnsGetBytes,
		"WriterOwnsBytes":    suite.CommonTestWriterOwnsBytes,
		"PrefixIterator":     suite.CommonTestPrefixIterator,
		"PrefixIteratorSeek": suite.CommonTestPrefixIteratorSeek,
		"RangeIterator":      suite.CommonTestRangeIterator,
		"RangeIteratorSeek":  suite.CommonTestRangeIteratorSeek,
		"Merge":              suite.CommonTestMerge,
	}
	for name, test := range tests {
		var mo store.MergeOperator
		if name == "Merge" {
			mo = &suite.TestMergeCounter{}
		}
		t.Run(name, func(t *testing.T) { test(t, open(t, mo, map[string]any{"path": t.TempDir()})) })
		t.Run(name+"/memory", func(t *testing.T) { test(t, open(t, mo, map[string]any{"in_memory": true})) })
	}
}
