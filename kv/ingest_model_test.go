package kv

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
	"github.com/siftkv/siftkv/sstable"
)

// A settable is a model that files are taken into.
type settable interface {
	Set(k, v string)
	Delete(k string)
	DeleteRange(lo, hi []byte)
}

// writeIngestFile writes a file of random values under the keys of m that lie in one
// of a few ranges, deletes, and perhaps a range delete, and does to m what ingesting
// it does.
func writeIngestFile(t *testing.T, rng *rand.Rand, fsys vfs.FS, path string, m settable, keys []string) {
	t.Helper()
	f, err := fsys.Create(path)
	require.NoError(t, err)
	w := sstable.NewWriter(f, &sstable.WriterOptions{BlockSize: 64 + rng.IntN(500), Filter: randomOptions(rng).Filter})
	if len(keys) > 1 && rng.IntN(3) == 0 {
		lo, hi := keys[0], keys[len(keys)-1]
		require.NoError(t, w.DeleteRange([]byte(lo), []byte(hi)))
		m.DeleteRange([]byte(lo), []byte(hi))
	}
	for i, k := range keys {
		if i > 0 && k == keys[i-1] {
			continue
		}
		if rng.IntN(4) == 0 {
			require.NoError(t, w.Delete([]byte(k)))
			m.Delete(k)
			continue
		}
		v := randomBytes(rng, rng.IntN(200))
		m.Set(k, string(v))
		require.NoError(t, w.Set([]byte(k), v))
	}
	_, err = w.Finish()
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// ingest takes in up to three files that do not overlap.
func (r *modelRun) ingest(n int) {
	all := storetest.Model{}
	for range 1 + r.rng.IntN(30) {
		all[string(r.key())] = ""
	}
	keys, next := all.Keys(), maps.Clone(r.m)
	var paths []string
	for len(keys) > 0 {
		take := 1 + r.rng.IntN(len(keys))
		if len(paths) == 2 {
			take = len(keys)
		}
		path := fmt.Sprintf("ingest-%d-%d", n, len(paths))
		writeIngestFile(r.t, r.rng, r.fs, path, next, keys[:take])
		paths, keys = append(paths, path), keys[take:]
	}
	r.rng.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	require.NoError(r.t, r.db.Ingest(r.t.Context(), paths,
		&IngestOptions{Link: r.rng.IntN(3) == 0, SkipVerify: r.rng.IntN(3) == 0}))
	r.m = next
}

// TestModelWithIngest is TestModel with ingests between the other operations.
func TestModelWithIngest(t *testing.T) {
	t.Parallel()
	for seed := range uint64(scale.Count(6, 12)) {
		rng := rand.New(rand.NewPCG(seed, 606))
		r := &modelRun{t: t, rng: rng, fs: vfs.NewMem(), opts: randomOptions(rng), m: storetest.ModelStore{},
			clock: &storetest.Clock{}}
		r.open()
		if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r.t = t
			for n := range 600 {
				if rng.IntN(20) == 0 {
					r.ingest(n)
				}
				r.step()
			}
			r.checkAll()
			r.release()
			require.NoError(t, r.db.Close())
		}) {
			return
		}
	}
}

// TestIngestIsSeenAtOnce has one writer that counts up: in a write, in two files that
// are ingested together, and in a write again. Nobody may ever see one of them ahead
// of what came before.
func TestIngestIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(8, 606))
	o := randomOptions(rng)
	db := openDir(t, dir, o)
	from := t.TempDir()
	var done atomic.Bool
	var others sync.WaitGroup
	look := func(seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 607))
		for !done.Load() {
			var reader Reader = db
			s := db.NewSnapshot()
			if rng.IntN(2) == 0 {
				reader = s
			}
			it, err := reader.NewIter(nil)
			require.NoError(t, err)
			seen := map[string]int64{}
			for ok := it.First(); ok; ok = it.Next() {
				seen[string(it.Key())] = count(t, it.Value())
			}
			require.NoError(t, it.Close())
			require.Equal(t, seen["b1"], seen["b2"], "half an ingest is seen")
			require.GreaterOrEqual(t, seen["a"], seen["b1"])
			require.GreaterOrEqual(t, seen["b1"], seen["c"], "a write is seen, and the ingest before it is not")
			require.LessOrEqual(t, seen["a"]-seen["c"], int64(1))
			require.NoError(t, s.Close())
		}
	}
	others.Go(func() { look(1) })
	others.Go(func() { look(2) })
	others.Go(func() {
		for !done.Load() {
			require.NoError(t, db.Compact(t.Context(), nil, nil))
		}
	})
	others.Go(func() { // so that there is something to flush in the ingest's turn
		for i := 0; !done.Load(); i++ {
			require.NoError(t, db.Set([]byte("z"), strconv.AppendInt(nil, int64(i), 10), NoSync))
		}
	})
	for i := range scale.Count(20, 100) {
		n := strconv.Itoa(i + 1)
		require.NoError(t, db.Set([]byte("a"), []byte(n), Async))
		paths := []string{
			ingestFile(t, vfs.OS, filepath.Join(from, n+"-1"), nil, "b1="+n),
			ingestFile(t, vfs.OS, filepath.Join(from, n+"-2"), nil, "b2="+n),
		}
		require.NoError(t, db.Ingest(t.Context(), paths, nil))
		for _, p := range paths {
			require.NoError(t, os.Remove(p))
		}
		require.NoError(t, db.Set([]byte("c"), []byte(n), Async))
	}
	done.Store(true)
	others.Wait()
	require.NoError(t, db.Close())
}

// ingest takes in files as one write of a history. It returns the error of Ingest,
// or of writing the files.
func (r *cutRun) ingest() error {
	n := len(r.states)
	m := maps.Clone(r.states[n-1])
	m["count"] = strconv.Itoa(n)
	var paths []string
	for i, part := range []string{"count", "key/0", "key/1"} {
		path := fmt.Sprintf("ingest-%d-%d", n, i)
		keys := []string{part}
		for j := range r.rng.IntN(20) * min(i, 1) {
			keys = append(keys, fmt.Sprintf("%s%02d", part, 3*j))
		}
		fsys := r.opts.harness.FS
		if c, ok := fsys.(*crashfs.FS); ok {
			fsys = crashfs.New(c.Disk, nothing) // writing the files is not under test
		}
		if i == 0 {
			ingestFile(r.t, fsys, path, nil, "count="+m["count"])
		} else {
			writeIngestFile(r.t, r.rng, fsys, path, m, keys)
		}
		paths = append(paths, path)
	}
	r.states = append(r.states, m)
	r.begun.Store(int64(n))
	return r.db.Ingest(r.t.Context(), paths, &IngestOptions{Link: r.rng.IntN(2) == 0})
}

// TestPowerCutDuringIngest cuts the power while files are taken in, between writes
// that nobody synced: what is left is a prefix of the history, with all of an ingest's
// files or none.
func TestPowerCutDuringIngest(t *testing.T) {
	t.Parallel()
	cuts := 0
	for seed := uint64(0); cuts < scale.Count(48, 120); seed++ {
		r := &cutRun{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 608)), states: []storetest.Model{{}}}
		mem := crashfs.NewDisk()
		clock := rand.New(rand.NewPCG(seed, 609))
		calls := 0
		fs := crashfs.New(mem, func() error {
			calls++
			if len(r.cuts) < 12 && clock.IntN(15) == 0 {
				c := cut{call: calls, synced: int(r.synced.Load())}
				c.disk = mem.Cut(clock)
				c.begun = int(r.begun.Load())
				r.cuts = append(r.cuts, c)
			}
			return nil
		})
		r.open(fs)
		for range 8 {
			for range r.rng.IntN(6) {
				require.NoError(t, r.write())
			}
			require.NoError(t, r.ingest())
			r.durable()
		}
		require.NoError(t, r.db.Close())
		for _, c := range r.cuts {
			r.check(c)
		}
		cuts += len(r.cuts)
	}
	t.Logf("%d power cuts, each followed by one during recovery", cuts)
}

// TestCloseWaitsForAnIngest closes the store in the middle of an ingest, which must
// not leave a file in a directory that may be another's by then.
func TestCloseWaitsForAnIngest(t *testing.T) {
	mem := crashfs.NewDisk()
	var db *DB
	var closing atomic.Bool
	closed := make(chan error, 1)
	path := ingestFile(t, crashfs.New(mem, nothing), "file", nil, "k=v")
	fsys := crashfs.New(mem, func() error {
		if closing.CompareAndSwap(true, false) {
			go func() { closed <- db.Close() }()
			for !db.closed.Load() {
				runtime.Gosched()
			}
		}
		return nil
	})
	db, err := Open("db", &Options{harness: harness.Harness{FS: fsys}})
	require.NoError(t, err)
	closing.Store(true)
	require.ErrorIs(t, db.Ingest(t.Context(), []string{path}, nil), ErrClosed)
	require.NoError(t, <-closed)
	names, err := fsys.List("db")
	require.NoError(t, err)
	for _, name := range names {
		kind, _ := manifest.ParseFileName(name)
		require.NotEqual(t, manifest.FileTable, kind)
	}
}

// TestIngestWhenTheDiskFails lets every call of an ingest that changes the disk fail
// in turn: all of the files are there afterwards, or none.
func TestIngestWhenTheDiskFails(t *testing.T) {
	failed := 0
	for failAt := 1; ; failAt++ {
		r := &cutRun{t: t, seed: uint64(failAt), rng: rand.New(rand.NewPCG(3, 610)), states: []storetest.Model{{}}}
		mem := crashfs.NewDisk()
		var calls atomic.Int64
		calls.Store(-1 << 30)
		fs := crashfs.New(mem, func() error {
			if calls.Add(1) == int64(failAt) {
				return errDisk
			}
			return nil
		})
		r.open(fs)
		require.NoError(t, r.write())
		calls.Store(0)
		err := r.ingest()
		reached := calls.Swap(-1 << 30)
		if err == nil {
			r.durable()
		} else {
			failed++
			require.ErrorIs(t, err, errDisk)
		}
		_ = r.db.Close()
		r.recovered(cut{disk: mem, call: failAt, synced: int(r.synced.Load()), begun: int(r.begun.Load())}, nothing)
		if reached < int64(failAt) {
			require.NoError(t, err)
			break
		}
	}
	require.Greater(t, failed, 10)
	t.Logf("%d failures", failed)
}
