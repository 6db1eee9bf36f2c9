package kv

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv/explain"
	"github.com/siftkv/siftkv/sstable"
)

func TestExplainTellsEveryStep(t *testing.T) {
	db := openMem(t, &Options{L0CompactionThreshold: 50, Compression: sstable.NoCompression})
	fill := func(value string, keys ...string) string {
		for _, k := range keys {
			set(t, db, k, value)
		}
		require.NoError(t, db.Flush(t.Context()))
		s := db.acquire(0)
		defer s.release(0)
		return s.version.Level0()[0].Name()
	}
	for i := range 1000 {
		set(t, db, fmt.Sprintf("k%03d", i), "bottom")
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	s := db.acquire(0)
	bottom := s.version.Levels[lastLevel].Tables()[0].Name()
	s.release(0)
	narrow := fill("narrow", "k100", "k200")
	wide := fill("wide", "k000", "k500", "k999")
	set(t, db, "k300", "memory")

	explained := func(key string) *explain.Lookup {
		e, err := db.Explain([]byte(key))
		require.NoError(t, err)
		ok, err := db.Has([]byte(key))
		require.NoError(t, err)
		require.Equal(t, ok, e.Found)
		return e
	}
	steps := func(e *explain.Lookup) (s []string) {
		for _, step := range e.Steps {
			s = append(s, fmt.Sprintf("%d %s %s", step.Level, step.Source, step.Verdict))
		}
		return s
	}
	require.Equal(t, []string{"-1 memtable present"}, steps(explained("k300")))
	require.Equal(t, []string{"-1 memtable absent", "0 " + wide + " present"}, steps(explained("k500")))
	require.Equal(t, []string{"-1 memtable absent", "0 " + wide + " filter", "0 " + narrow + " present"},
		steps(explained("k200")))
	e := explained("k700")
	require.Equal(t, []string{"-1 memtable absent", "0 " + wide + " filter", "0 " + narrow + " bounds",
		"6 " + bottom + " present"}, steps(e))
	require.True(t, e.Steps[3].Probe.IndexLookup)
	require.False(t, e.Steps[1].Probe.IndexLookup, "the filter comes first")
	cached, read := 0, 0
	for _, s := range e.Steps {
		cached += s.Probe.BlocksFromCache
		read += s.Probe.BlocksFromDisk
	}
	require.Equal(t, 1, cached+read)
	require.Contains(t, e.String(), "L6 "+bottom)
	require.Contains(t, e.String(), "ruled out by filter")
	require.Equal(t, []string{"-1 memtable absent", "0 " + wide + " bounds", "0 " + narrow + " bounds",
		"6 " + bottom + " bounds"}, steps(explained("a")))

	require.NoError(t, db.DeleteRange([]byte("k600"), []byte("k800"), nil))
	e = explained("k700")
	require.NotZero(t, e.CoveredBy)
	require.Equal(t, "6 "+bottom+" range tombstone", steps(e)[len(e.Steps)-1])
	require.Contains(t, e.String(), "range tombstone")
}

func TestExplainTellsOfOperands(t *testing.T) {
	db := openMem(t, &Options{Merger: modelMerger, L0CompactionThreshold: 10})
	set(t, db, "k", "a")
	require.NoError(t, db.Flush(t.Context()))
	mergeAll(t, db, "k", "b", "c")
	require.NoError(t, db.Flush(t.Context()))
	mergeAll(t, db, "k", "d")
	e, err := db.Explain([]byte("k"))
	require.NoError(t, err)
	require.True(t, e.Found)
	require.Equal(t, 3, e.Operands, "a flush makes one of two")
	var verdicts []explain.Verdict
	for _, s := range e.Steps {
		verdicts = append(verdicts, s.Verdict)
	}
	require.Equal(t, []explain.Verdict{explain.ReadOperand, explain.ReadOperand, explain.ReadPresent}, verdicts)
	require.Contains(t, e.String(), "merged from 3 parts")
	require.Contains(t, e.String(), "read, has merge operands")

	before := db.Metrics()
	requireValue(t, db, "k", "a,b,c,d")
	m := db.Metrics().Sub(before)
	require.EqualValues(t, 1, m.Lookup().Hits, "one place has answered")
	require.Zero(t, m.MemtableHits)
	require.EqualValues(t, 2, m.Lookup().FilterTruePositives)
	checkIdentities(t, db.Metrics())
}

// Of a value in a blob file an explanation says where it lies, and does not read it; one under operands is read.
func TestExplainTellsWhereAValueLiesApart(t *testing.T) {
	db, _, m := separatedStore(t, vfs.NewMem())
	db.settle() // compactions read values under operands
	apart, inline, merged, got := 0, 0, 0, 0
	asked := func() uint64 { b := db.Metrics().Blobs; return b.Reads + b.CacheHits }
	for k, v := range m {
		before := asked()
		e, err := db.Explain([]byte(k))
		require.NoError(t, err)
		require.True(t, e.Found)
		read := asked() - before
		if e.Blob == nil {
			inline++
			require.Zero(t, read)
			require.NotContains(t, e.String(), ".blob")
			continue
		}
		require.Contains(t, e.String(), fmt.Sprintf("the value is in blob file %s at offset %d: %d bytes to read "+
			"for a value of %d\n", e.Blob.File, e.Blob.Offset, e.Blob.Stored, e.Blob.Size))
		last := e.Steps[len(e.Steps)-1].Verdict
		require.Contains(t, []explain.Verdict{explain.ReadPresent, explain.ReadOperand}, last)
		require.Contains(t, blobNames(t, db), filepath.Join("db", e.Blob.File))
		if e.Operands > 0 {
			merged++
			require.Equal(t, 2, e.Operands, "the value was read, and combined")
			continue
		}
		apart++
		require.Zero(t, read)
		require.Len(t, v, e.Blob.Size)
		was := db.Metrics().Blobs
		_, err = db.Get([]byte(k))
		require.NoError(t, err)
		if now := db.Metrics().Blobs; now.CacheHits == was.CacheHits {
			require.EqualValues(t, e.Blob.Stored, now.Read-was.Read, "what it says that Get reads")
			got++
		}
	}
	require.Positive(t, inline)
	require.Positive(t, merged)
	require.Positive(t, got)
	require.Greater(t, apart, 20)
	e, err := db.Explain([]byte("absent"))
	require.NoError(t, err)
	require.Nil(t, e.Blob)
	require.NoError(t, db.Close())
}
