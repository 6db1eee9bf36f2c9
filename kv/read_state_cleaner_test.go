package kv

import (
	"testing"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/stretchr/testify/require"
)

// TestTheLastReaderClosesTheTables holds a reference of a read over Close.
func TestTheLastReaderClosesTheTables(t *testing.T) {
	db, err := Open("", &Options{InMemory: true})
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("k"), nil, nil))
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	ok, err := db.Has([]byte("k"))
	require.NoError(t, err)
	require.True(t, ok)
	s := db.acquire(3)
	tb := s.version.Levels[lastLevel].Tables()[0]
	require.NotNil(t, tb.Reader.Load())
	require.NoError(t, db.Close())
	require.NotNil(t, tb.Reader.Load(), "the reader is still reading")
	s.release(3)
	require.Nil(t, tb.Reader.Load())
}

// Tables that a reader gives back while the store closes are closed, whoever of the two
// comes first.
func TestTablesThatAreGivenBackBesideCloseAreClosed(t *testing.T) {
	db := openMem(t, &Options{SeparateFrom: -1})
	set(t, db, "k", "v")
	require.NoError(t, db.Flush(t.Context()))
	v, err := (&version.Version{}).Apply(&manifest.Edit{Added: []manifest.AddedTable{
		{Table: db.installed().Level0()[0].Table}}})
	require.NoError(t, err)
	open := v.Level0()[0]
	_, err = open.Open(&db.tables)
	require.NoError(t, err)
	c := &version.Cleaner{Tables: &db.tables, History: &version.History{}}
	c.History.Install(v)
	c.Release(v)
	require.NoError(t, c.Drain()) // by a reader, before the cleaner has ended
	require.NotNil(t, open.Reader.Load(), "the cleaner sees to it")
	c = &version.Cleaner{Tables: &db.tables, History: c.History}
	c.Start()
	c.Stop()
	v.Ref()
	c.Release(v)
	require.Nil(t, open.Reader.Load())
}
