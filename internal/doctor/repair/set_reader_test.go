package repair

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/kv"
)

// A log that has handles is replayed with its blob files, which no manifest lists.
func TestSeparatedValuesOfALog(t *testing.T) {
	for _, kind := range []manifest.FileKind{manifest.FileCurrent, manifest.FileManifest} {
		from := filepath.Join(t.TempDir(), "open")
		db, err := kv.Open(from, nil)
		require.NoError(t, err)
		value := strings.Repeat("value", 20_000)
		require.NoError(t, db.SetReader(t.Context(), []byte("a"), int64(len(value)), strings.NewReader(value), kv.Sync))
		dir := filepath.Join(t.TempDir(), "store")
		copyOpen(t, from, dir)
		require.NoError(t, db.Close())
		require.NoError(t, os.Remove(filesOf(t, dir, kind)[0]))
		r, err := Run(t.Context(), dir, Options{})
		require.NoError(t, err)
		require.Equal(t, map[string]string{"a": value}, contents(t, dir), "%+v", r)
	}
}

// Of the blob file of a log, which has no end, a repair takes every value.
func TestHistoryEndsInARepairWhereAValueIsTorn(t *testing.T) {
	from := filepath.Join(t.TempDir(), "open")
	db, err := kv.Open(from, &kv.Options{SeparateFrom: 1, SeparateAtCommit: true})
	require.NoError(t, err)
	want := map[string]string{}
	for _, k := range []string{"c", "a", "d", "b"} {
		want[k] = strings.Repeat(k, 100)
		require.NoError(t, db.Set([]byte(k), []byte(want[k]), kv.Sync))
	}
	dir := filepath.Join(t.TempDir(), "store")
	copyOpen(t, from, dir)
	require.NoError(t, db.Close())
	r, err := Run(t.Context(), dir, Options{})
	require.NoError(t, err)
	t.Logf("%+v", r)
	require.Equal(t, want, contents(t, dir), "%+v", r)
}

// A table whose values were written at commit, in any order of keys, is made anew of them.
func TestTablesOfValuesThatWereWrittenAtCommitAreRebuilt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	db, err := kv.Open(dir, &kv.Options{SeparateFrom: 1, SeparateAtCommit: true})
	require.NoError(t, err)
	want := map[string]string{}
	for n := range 200 {
		k := string([]byte{byte('a' + n*7%26), byte('a' + n*3%11)})
		want[k] = strings.Repeat(k, 1+n)
		require.NoError(t, db.Set([]byte(k), []byte(want[k]), kv.NoSync))
	}
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Close())
	for _, name := range filesOf(t, dir, manifest.FileTable) {
		require.NoError(t, os.Remove(name))
	}
	r, err := Run(t.Context(), dir, Options{})
	require.NoError(t, err)
	require.Equal(t, want, contents(t, dir), "%+v", r)
}

// A beginning calls a function before the first byte is read.
type beginning struct {
	io.Reader
	once sync.Once
	f    func()
}

func (b *beginning) Read(p []byte) (int, error) {
	b.once.Do(b.f)
	return b.Reader.Read(p)
}

// The record of a value from a stream may have a number from long before its table: it is the table's all the same, and
// newer than what was written, flushed and is left from the meantime.
func TestATableOfAStreamThatTookLongIsRebuilt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	db, err := kv.Open(dir, nil)
	require.NoError(t, err)
	want := map[string]string{"stream": strings.Repeat("value", 60_000)}
	r := &beginning{Reader: strings.NewReader(want["stream"]), f: func() {
		for _, k := range []string{"before", "stream"} {
			require.NoError(t, db.Set([]byte(k), []byte("meanwhile"), kv.NoSync))
		}
		want["before"] = "meanwhile"
		require.NoError(t, db.Flush(t.Context()))
	}}
	require.NoError(t, db.SetReader(t.Context(), []byte("stream"), int64(len(want["stream"])), r, kv.Sync))
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Close())
	require.True(t, maps.Equal(want, contents(t, dir)))
	tables := filesOf(t, dir, manifest.FileTable)
	require.Len(t, tables, 2)
	require.NoError(t, os.Remove(tables[1]))
	rep, err := Run(t.Context(), dir, Options{})
	require.NoError(t, err)
	require.True(t, maps.Equal(want, contents(t, dir)), "%+v", rep)
	require.Empty(t, rep.Lost)
}
