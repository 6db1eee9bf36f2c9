package kv

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
)

// requireGets compares what lookups say about keys with a model: they stop at the first
// place that has a key, where an iterator sees the versions of all places.
func requireGets(t *testing.T, want storetest.Model, db Reader, keys []string) {
	t.Helper()
	for _, k := range keys {
		v, err := db.Get([]byte(k))
		if _, ok := want[k]; !ok {
			require.ErrorIs(t, err, ErrNotFound, "%q", k)
			continue
		}
		require.NoError(t, err, "%q", k)
		require.Equal(t, want[k], string(v), "%q", k)
	}
}

// A level0Run does random things to a store that has nothing but level 0, and to a model.
type level0Run struct {
	t     *testing.T
	rng   *rand.Rand
	fs    vfs.FS
	db    *DB
	m     storetest.Model
	keys  []string
	files int
}

func (r *level0Run) open() {
	r.db = openDir(r.t, "db", &Options{harness: harness.Harness{FS: r.fs, RangeSize: []int64{0, 200}[r.rng.IntN(2)]},
		L0CompactionThreshold: 1000, L0SlowdownThreshold: 1000,
		L0StopThreshold: 1001})
}

// flush makes a file over all keys.
func (r *level0Run) flush() {
	last := len(r.keys) - 1
	for i, k := range r.keys {
		switch n := r.rng.IntN(4); {
		case n == 0 && i > 0 && i < last:
			require.NoError(r.t, r.db.Delete([]byte(k), NoSync))
			r.m.Delete(k)
		case n <= 1 || i == 0 || i == last:
			r.files++
			v := fmt.Sprint("flushed ", r.files)
			require.NoError(r.t, r.db.Set([]byte(k), []byte(v), NoSync))
			r.m.Set(k, v)
		}
	}
	require.NoError(r.t, r.db.Flush(context.Background()))
}

// ingest takes in a few files together, in any order.
func (r *level0Run) ingest() {
	var paths []string
	for keys := r.keys; len(keys) > 0; {
		n := min(1+r.rng.IntN(4), len(keys))
		r.files++
		path := fmt.Sprint("ingest", r.files)
		storetest.WriteIngestFile(r.t, r.rng, r.fs, path, randomOptions(r.rng).Filter, r.m, keys[:n])
		paths, keys = append(paths, path), keys[n:]
	}
	r.rng.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	require.NoError(r.t, r.db.Ingest(context.Background(), paths, nil))
}

// merge merges some neighbours of level 0.
func (r *level0Run) merge() {
	r.db.mu.Lock()
	runs := r.db.current.Levels[0].Runs
	from := r.rng.IntN(len(runs))
	var tables []*version.Table
	for _, run := range runs[from:min(from+1+r.rng.IntN(5), len(runs))] {
		tables = append(tables, run.Tables()...)
	}
	j := r.db.mergeOf(tables, 0)
	j.Asked = true
	c := r.db.begin(j)
	r.db.mu.Unlock()
	require.NoError(r.t, r.db.compact(r.t.Context(), c))
	r.db.reschedule(func() { r.db.end(c) })
}

// Level 0 has the files of ingests, which share a sequence number, among others. Whatever
// neighbours are merged, and in whatever order: the newest version of a key stays the first
// that a lookup comes to.
func TestMergesWithinLevel0KeepTheOrderOfIngestedFiles(t *testing.T) {
	t.Parallel()
	for seed := range uint64(scale.Count(6, 12)) {
		rng := rand.New(rand.NewPCG(seed, 2027))
		r := &level0Run{t: t, rng: rng, fs: vfs.NewMem(), m: storetest.Model{}}
		for i := range 12 {
			r.keys = append(r.keys, fmt.Sprintf("%02d", i))
		}
		r.open()
		r.flush()
		for range 60 {
			switch rng.IntN(8) {
			case 0:
				r.flush()
			case 1, 2:
				r.ingest()
			case 3:
				require.NoError(t, r.db.Close())
				r.open()
			default:
				r.merge()
			}
			requireGets(t, r.m, r.db, r.keys)
		}
		requireContents(t, r.m, r.db)
		s, past := r.db.NewSnapshot(), maps.Clone(r.m)
		r.ingest()
		r.flush()
		r.merge()
		requireGets(t, past, s, r.keys)
		require.NoError(t, s.Close())
		require.NoError(t, r.db.Compact(t.Context(), nil, nil))
		requireGets(t, r.m, r.db, r.keys)
		require.NoError(t, r.db.Close())
	}
}

// While a compaction takes long, one of two files that were ingested together is merged with
// older files of level 0. What these have of the other file's keys stays below it.
func TestPartOfAnIngestIsMergedWithOlderFiles(t *testing.T) {
	for kind := range numCompactions {
		fsys := newHoldFS()
		db := openDir(t, "db", &Options{harness: harness.Harness{FS: fsys}, Compaction: kind,
			MaxConcurrentCompactions: 1,
			L0CompactionThreshold:    3, L0SlowdownThreshold: 5, L0StopThreshold: 20})
		m := storetest.Model{}
		write := func(keys ...string) {
			for _, k := range keys {
				m.Set(k, "old")
				set(t, db, k, "old")
			}
			require.NoError(t, db.Flush(t.Context()))
		}
		write("a", "z")
		fsys.armed.Store(true)
		done := make(chan error)
		go func() { done <- db.Compact(t.Context(), nil, nil) }()
		<-fsys.held
		write("a", "b", "y", "z")
		write("b", "z")

		// The second file is small beside the first: only that is merged.
		o := &sstable.WriterOptions{Compression: sstable.NoCompression}
		large := string(bytes.Repeat([]byte("v"), 5000))
		paths := []string{
			ingestFile(t, fsys, "first", o, "y="+large),
			ingestFile(t, fsys, "second", o, "-a", "b=new"),
		}
		require.NoError(t, db.Ingest(t.Context(), paths, nil))
		m.Set("y", large)
		m.Delete("a")
		m.Set("b", "new")
		files := func() int { return db.Metrics().Levels[0].Files }
		storetest.Until(func() bool { return files() == 3 })

		keys := []string{"a", "b", "y", "z"}
		requireGets(t, m, db, keys)
		requireContents(t, m, db)
		close(fsys.released)
		require.NoError(t, <-done)
		requireGets(t, m, db, keys)
		require.NoError(t, db.Close())
	}
}

// An ingest into level 0 beside a merge there, from the same key on, leaves the merge its span.
func TestAnIngestBesideAMergeWithinLevel0(t *testing.T) {
	mem := vfs.NewMem()
	db := openDir(t, "db", &Options{harness: harness.Harness{FS: mem}, L0CompactionThreshold: 100,
		L0SlowdownThreshold: 100})
	set(t, db, "a", "1")
	set(t, db, "z", "1")
	require.NoError(t, db.Flush(t.Context()))
	db.mu.Lock()
	j := db.mergeOf(slices.Clone(db.current.Level0()), 0)
	j.Asked = true
	c := db.begin(j)
	running := slices.Clone(db.compactions.Reserved)
	db.mu.Unlock()
	require.NoError(t, db.Ingest(t.Context(), []string{ingestFile(t, mem, "file", nil, "a=2")}, nil))
	reserved := func() []*compaction.Reservation {
		db.mu.Lock()
		defer db.mu.Unlock()
		return slices.Clone(db.compactions.Reserved)
	}
	require.Equal(t, running, reserved())
	require.NoError(t, db.compact(t.Context(), c))
	db.reschedule(func() { db.end(c) })
	require.Empty(t, reserved())
	requireContents(t, storetest.Model{"a": "2", "z": "1"}, db)
	requireGets(t, storetest.Model{"a": "2", "z": "1"}, db, []string{"a", "z"})
	require.NoError(t, db.Close())
}
