package kv

import (
	"testing"

	"github.com/siftkv/siftkv/internal/version"
	"github.com/stretchr/testify/require"
)

// TestTheLastReaderClosesTheTables holds a reference of a read over Close.
func TestTheLastReaderClosesTheTables(t *testing.T) {
	db, err := Open("", &Options{InMemory: true})
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("k"), nil, nil))
	require.NoError(t, db.Compact(nil, nil))
	ok, err := db.Has([]byte("k"))
	require.NoError(t, err)
	require.True(t, ok)
	s := db.acquire(3)
	tb := s.version.Levels[lastLevel].Tables[0]
	require.NotNil(t, tb.Reader.Load())
	require.NoError(t, db.Close())
	require.NotNil(t, tb.Reader.Load(), "the reader is still reading")
	db.release(s, 3)
	require.Nil(t, tb.Reader.Load())
}

// Tables that a reader gives back while the store closes are closed, whoever of the two
// comes first.
func TestTablesThatAreGivenBackBesideCloseAreClosed(t *testing.T) {
	db := openMem(t, nil)
	set(t, db, "k", "v")
	require.NoError(t, db.Flush())
	open := db.current.Levels[0].Tables[0]
	_, err := open.Open(&db.tables)
	require.NoError(t, err)
	c := &version.Cleaner{Tables: &db.tables}
	c.Table(open)
	require.NoError(t, c.Drain()) // by a reader, before the cleaner has ended
	require.NotNil(t, open.Reader.Load(), "the cleaner sees to it")
	c = &version.Cleaner{Tables: &db.tables}
	c.Start()
	c.Stop()
	c.Table(open)
	require.NoError(t, c.Drain())
	require.Nil(t, open.Reader.Load())
}
