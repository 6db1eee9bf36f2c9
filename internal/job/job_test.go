package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/filterbudget"
	"github.com/siftkv/siftkv/internal/iterator"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/internal/values"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

const dir = "db"

// testEnv returns an Env in memory, whose merges have ranges of a size.
func testEnv(t *testing.T, fsys vfs.FS, rangeSize int64) *Env {
	t.Helper()
	require.NoError(t, fsys.MkdirAll(dir))
	none, err := filterpolicy.Parse("none")
	require.NoError(t, err)
	num := atomic.Uint64{}
	num.Store(10)
	path := func(num uint64) string { return filepath.Join(dir, manifest.FileName(manifest.FileTable, num)) }
	return &Env{FS: fsys, Dir: dir, Log: slog.New(slog.DiscardHandler), NewNum: func() uint64 { return num.Add(1) },
		Tables: &tablecache.Cache{Path: path, OpenFile: fsys.Open, Log: slog.New(slog.DiscardHandler)},
		Sizes: &compaction.Options{RunsPerLevel: 4, SpaceAmplification: 1.3, L0CompactionThreshold: 2,
			L0SlowdownThreshold: 12, L0StopThreshold: 36, MaxConcurrentCompactions: 2, MemtableSize: 1 << 20,
			BaseLevelSize: 1 << 20, TargetFileSize: 1 << 20, BlobSpaceLimit: 1.3, RangeSize: rangeSize},
		Format:  sstable.WriterOptions{BlockSize: 512},
		Filters: &filterbudget.Plan{Point: none, Ranges: filterbudget.NoRanges},
		Now:     func() uint64 { return 0 },
		Threads: Threads{Busy: func() int { return 0 }, Hire: func(int) bool { return true }, Dismiss: func() {}},
		Rate:    &RateLimiter{}}
}

// memtableOf returns a memtable of n keys, each with a value of 100 bytes that begins with its sequence number.
func memtableOf(t *testing.T, n int, first base.SeqNum) *memtable.Memtable {
	t.Helper()
	m := memtable.New(1 << 20)
	t.Cleanup(m.Unref)
	for i := range n {
		key := fmt.Appendf(nil, "key%06d", i)
		seq := first + base.SeqNum(i)
		value := append(fmt.Appendf(nil, "%06d", seq), make([]byte, 94)...)
		require.NoError(t, m.Add(base.MakeKey(key, seq, base.KindSet), filterpolicy.Hash(key), value))
	}
	return m
}

// flushed returns the version that follows a flush.
func flushed(t *testing.T, env *Env, v *version.Version, m *memtable.Memtable) *version.Version {
	t.Helper()
	f := Flush{Version: v, Memtables: []*memtable.Memtable{m}, Limit: base.MaxSeqNum, Values: &values.Flush{}}
	out, err := f.Do(env)
	require.NoError(t, err)
	e := &manifest.Edit{}
	out.AddTo(e, 0, 0)
	next, err := v.Apply(e)
	require.NoError(t, err)
	return next
}

// picked returns the job that a version needs.
func picked(env *Env, v *version.Version) *compaction.Job {
	return compaction.Pick(&compaction.Input{Options: *env.Sizes, Version: v, OldestSnapshot: base.MaxSeqNum,
		Disk:  compaction.Disk{Free: math.MaxInt64, WithObsolete: math.MaxInt64},
		State: &compaction.State{}})
}

// Flushes and compactions in ranges leave the newest version of each key, in one run.
func TestFlushAndCompact(t *testing.T) {
	t.Parallel()
	for _, rangeSize := range []int64{0, 8 << 10} {
		env := testEnv(t, vfs.NewMem(), rangeSize)
		v := &version.Version{}
		for i := range 2 {
			v = flushed(t, env, v, memtableOf(t, 500, base.SeqNum(1+1000*i)))
			require.Len(t, v.Levels[0].Runs, i+1, "a flush is a run, in any number of tables")
		}
		require.Equal(t, rangeSize > 0, len(v.Level0()) > 2)
		j := picked(env, v)
		require.Equal(t, compaction.Merge, j.Kind)
		c := Compaction{Job: j}
		e, out, err := c.Do(t.Context(), env)
		require.NoError(t, err)
		require.Equal(t, rangeSize > 0, len(out.Tables) > 1)
		require.Positive(t, out.Bytes())
		v, err = v.Apply(e)
		require.NoError(t, err)
		require.Empty(t, v.Level0())
		require.Len(t, v.Runs, 1)
		it := iterator.NewRun(v.Runs[0], env.Tables, sstable.IterOptions{})
		n := 0
		for ok := it.First(); ok; ok = it.Next() {
			require.Equal(t, fmt.Sprintf("key%06d", n), string(it.Key().User))
			require.Equal(t, fmt.Sprintf("%06d", 1001+n), string(it.Value()[:6]))
			n++
		}
		require.NoError(t, it.Error())
		require.Equal(t, 500, n)
		require.NoError(t, v.CloseNew(env.Tables))
	}
}

// A move is an edit alone.
func TestMove(t *testing.T) {
	t.Parallel()
	env := testEnv(t, vfs.NewMem(), 0)
	v := flushed(t, env, &version.Version{}, memtableOf(t, 100, 1))
	in := compaction.Input{Options: *env.Sizes, Version: v, State: &compaction.State{}}
	j := &compaction.Job{Kind: compaction.Merge, Output: compaction.NumLevels - 1}
	j.Inputs[0] = v.Level0()
	c := Compaction{Job: in.Prepare(j)}
	require.Equal(t, compaction.Move, c.Kind)
	e, out, err := c.Do(t.Context(), env)
	require.NoError(t, err)
	require.Equal(t, v.Level0()[0].Table, out.Tables[0])
	v, err = v.Apply(e)
	require.NoError(t, err)
	require.Equal(t, 1, v.Levels[compaction.NumLevels-1].Len())
}

// After an error of the disk, of a file, of the caller or of the store no new file is left, and the error says which
// it is.
func TestFailedJobsLeaveNoFiles(t *testing.T) {
	t.Parallel()
	errTest := errors.New("test")
	for name, c := range map[string]struct {
		fail  func(t *testing.T, env *Env, fsys *failingFS) context.Context
		want  error
		input bool
	}{
		"no file can be made": {func(t *testing.T, _ *Env, fsys *failingFS) context.Context {
			fsys.creates = 2
			return t.Context()
		}, errFailing, false},
		"names are not durable": {func(t *testing.T, _ *Env, fsys *failingFS) context.Context {
			fsys.syncs = 1
			return t.Context()
		}, errFailing, false},
		"the context has ended": {func(t *testing.T, _ *Env, _ *failingFS) context.Context {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return ctx
		}, base.ErrContextEnded, true},
		"the store closes": {func(t *testing.T, env *Env, _ *failingFS) context.Context {
			env.Stop = func() error { return errTest }
			return t.Context()
		}, errTest, true},
		"an input is gone": {func(t *testing.T, env *Env, _ *failingFS) context.Context {
			env.Tables.OpenFile = func(string) (vfs.ReadFile, error) { return nil, errTest }
			return t.Context()
		}, errTest, true},
		"the application panics": {func(t *testing.T, env *Env, _ *failingFS) context.Context {
			env.Now = func() uint64 { panic(errTest) }
			return t.Context()
		}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fsys := &failingFS{FS: vfs.NewMem()}
			env := testEnv(t, fsys, 64<<10)
			v := &version.Version{}
			for i := range 2 {
				v = flushed(t, env, v, memtableOf(t, 4000, base.SeqNum(1+10000*i)))
			}
			before, err := fsys.List(dir)
			require.NoError(t, err)
			j := picked(env, v)
			job := Compaction{Job: j}
			ctx := c.fail(t, env, fsys)
			e, out, err := job.Do(ctx, env)
			require.Error(t, err)
			require.Nil(t, e)
			require.Empty(t, out.Blobs)
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
			}
			_, input := errors.AsType[InputError](err)
			require.Equal(t, c.input, input)
			after, err := fsys.List(dir)
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
}

var errFailing = errors.New("failing")

// A failingFS fails after some files were made, or at every sync of a directory.
type failingFS struct {
	vfs.FS
	creates, syncs int
	made           atomic.Int64
}

func (f *failingFS) Create(name string) (vfs.WriteFile, error) {
	if f.creates > 0 && f.made.Add(1) > int64(f.creates) {
		return nil, errFailing
	}
	return f.FS.Create(name)
}

func (f *failingFS) SyncDir(name string) error {
	if f.syncs > 0 {
		return errFailing
	}
	return f.FS.SyncDir(name)
}
