package kv

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/exactranges"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv/lookuptrace"
)

type rudeness = storetest.Rudeness

// A callbackTest is a function of the application and what has it called.
type callbackTest struct {
	name string
	set  func(o *Options, r *rudeness)
	act  func(t *testing.T, db *DB, r *rudeness) // calls it; what it returns does not matter

	failsForGood bool // with runtime.Goexit: the store must be closed and opened again
}

// flushed writes one more key and flushes.
func flushed(_ *testing.T, db *DB, _ *rudeness) {
	_ = db.Set([]byte("flushed"), []byte("1"), nil)
	_ = db.Flush(context.Background())
}

func compacted(t *testing.T, db *DB, r *rudeness) {
	flushed(t, db, r)
	_ = db.Compact(t.Context(), nil, nil)
}

// merged merges until operands in memory are combined, which is of one in eight.
func merged(_ *testing.T, db *DB, r *rudeness) {
	for !r.Called.Load() {
		_ = db.Merge([]byte("counter"), AppendInt64(nil, 0), nil)
	}
}

var callbackTests = []callbackTest{
	{name: "Events.Flushed", act: flushed,
		set: func(o *Options, r *rudeness) { o.Events.Flushed = func(FlushInfo) { r.Act() } }},
	{name: "Events.Compacted", act: compacted,
		set: func(o *Options, r *rudeness) { o.Events.Compacted = func(CompactionInfo) { r.Act() } }},
	{name: "Events.Stalled", act: stalled,
		set: func(o *Options, r *rudeness) {
			o.MaxMemtables = 2
			o.Events.Stalled = func(StallInfo) { r.Act() }
		}},
	{name: "Events.Failed in a writer", act: syncFails,
		set: func(o *Options, r *rudeness) { o.Events.Failed = func(error) { r.Act() } }},
	{name: "Events.Resumed", act: func(t *testing.T, db *DB, r *rudeness) {
		syncFails(t, db, r)
		storetest.Until(r.Called.Load)
	}, set: func(o *Options, r *rudeness) { o.Events.Resumed = func(ResumeInfo) { r.Act() } }},

	{name: "Logger in a flush", act: flushed,
		set: func(o *Options, r *rudeness) { o.Logger = slog.New(rudeHandler{r}) }},

	{name: "Clock in SetTTL", set: rudeClock, act: func(_ *testing.T, db *DB, _ *rudeness) {
		_ = db.SetTTL([]byte("t"), []byte("1"), time.Hour, nil)
	}},
	{name: "Clock in Get", set: rudeClock, act: func(_ *testing.T, db *DB, _ *rudeness) {
		_, _ = db.Get([]byte("ttl"))
	}},
	{name: "Clock in Has of a snapshot", set: rudeClock, act: func(_ *testing.T, db *DB, _ *rudeness) {
		s := db.NewSnapshot()
		defer s.Close()
		_, _ = s.Has([]byte("ttl"))
	}},
	{name: "Clock in GetSize", set: rudeClock, act: func(_ *testing.T, db *DB, _ *rudeness) {
		_, _ = db.GetSize([]byte("ttl"))
	}},
	{name: "Clock in GetReader", set: rudeClock, act: func(_ *testing.T, db *DB, _ *rudeness) {
		_, _ = db.GetReader([]byte("ttl"))
	}},
	{name: "Clock in MultiGet", set: rudeClock, act: func(_ *testing.T, db *DB, _ *rudeness) {
		_, _ = db.MultiGet([][]byte{[]byte("ttl"), []byte("k1")})
	}},
	{name: "Clock in a scan", set: rudeClock, act: scannedAll},
	{name: "Clock in Snapshot.Close", set: rudeClock, act: func(_ *testing.T, db *DB, _ *rudeness) {
		_ = db.NewSnapshot().Close()
	}},
	{name: "Clock in Tx.Discard", set: rudeClock, act: func(t *testing.T, db *DB, r *rudeness) {
		r.Armed.Store(false)
		tx, err := db.Begin(false)
		require.NoError(t, err)
		flushed(t, db, r)
		r.Armed.Store(true)
		_ = tx.Discard()
	}},
	{name: "Clock in a flush", set: rudeClock, act: flushed},
	{name: "Clock in a compaction", set: rudeClock, act: compacted},
	{name: "Clock in Metrics", set: rudeClock, act: func(_ *testing.T, db *DB, _ *rudeness) { _ = db.Metrics() }},

	{name: "Merger in a write", set: rudeMerger, act: merged, failsForGood: true},
	{name: "Merger in Get", set: rudeMerger, act: func(_ *testing.T, db *DB, r *rudeness) {
		for !r.Called.Load() { // unless the newest operand has a fold
			r.Armed.Store(false)
			_ = db.Merge([]byte("counter"), AppendInt64(nil, 0), nil)
			r.Armed.Store(true)
			_, _ = db.Get([]byte("counter"))
		}
	}},
	{name: "Merger in a flush", set: rudeMerger, act: flushed},

	{name: "Filter.NewBuilder", set: rudeFilter("new"), act: flushed},
	{name: "Filter's Builder.AddHash", set: rudeFilter("add"), act: flushed},
	{name: "Filter's Builder.Finish", set: rudeFilter("finish"), act: compacted},
	{name: "Filter.String in CompactFilters", set: rudeFilter("string"), act: func(_ *testing.T, db *DB, _ *rudeness) {
		_, _ = db.CompactFilters(context.Background())
	}},
	{name: "Filter.Decode", set: rudeFilter("decode"), act: func(t *testing.T, db *DB, r *rudeness) {
		flushed(t, db, r)
		_, _ = db.Get([]byte("flushed"))
	}},
	{name: "Filter.MayContainHash in Get", set: rudeFilter("ask"), act: func(_ *testing.T, db *DB, _ *rudeness) {
		_, _ = db.Get([]byte("k1x"))
	}},
	{name: "Filter.MayContainHash in MultiGet", set: rudeFilter("ask"), act: func(_ *testing.T, db *DB, _ *rudeness) {
		_, _ = db.MultiGet([][]byte{[]byte("k1x"), []byte("k1y")})
	}},
	{name: "Filter.MayContainHash in a goroutine of MultiGet", act: askedBeside,
		set: func(o *Options, r *rudeness) {
			rudeFilter("ask")(o, r)
			r.Within, o.BlockSize = "sharedBlocks).help", 64
		}},
	{name: "Filter.MayContainHash beside goroutines of MultiGet", act: askedBeside,
		set: func(o *Options, r *rudeness) {
			rudeFilter("ask")(o, r)
			r.Within, o.BlockSize = "sharedBlocks).lead", 64
		}},
	{name: "Prefix.Name in an edit", act: tombstonesFlushed,
		set: func(o *Options, r *rudeness) {
			rudePrefix(o, r)
			r.Within = "OpenTombstones"
		}},
	{name: "Filter.MayContainHash in a commit", set: rudeFilter("ask"), act: validated},
	{name: "RangeFilter's builder", set: rudeRanges("add"), act: flushed},
	{name: "RangeFilter in a scan", set: rudeRanges("ask"), act: func(_ *testing.T, db *DB, _ *rudeness) {
		it, err := db.NewIter(&IterOptions{LowerBound: []byte("k11"), UpperBound: []byte("k12")})
		if err == nil {
			defer it.Close()
			it.First()
		}
	}},
	{name: "Prefix in NewIter", set: rudePrefix, act: func(_ *testing.T, db *DB, _ *rudeness) {
		_, _ = db.NewIter(&IterOptions{LowerBound: []byte("k1"), UpperBound: []byte("k2")})
	}},
	{name: "Prefix in a flush", set: rudePrefix, act: flushed},

	{name: "io.Reader of SetReader", act: func(_ *testing.T, db *DB, r *rudeness) {
		_ = db.SetReader(context.Background(), []byte("stream"), 1<<20, rudeIO{r}, nil)
	}},
	{name: "io.Reader of a short value", act: func(_ *testing.T, db *DB, r *rudeness) {
		_ = db.SetReader(context.Background(), []byte("stream"), 100, rudeIO{r}, nil)
	}},
	{name: "io.Writer of Backup", act: func(_ *testing.T, db *DB, r *rudeness) {
		_, _ = db.Backup(context.Background(), rudeIO{r}, BackupMark{})
	}},
	{name: "io.Writer of a lookup trace", act: func(t *testing.T, db *DB, r *rudeness) {
		r.Armed.Store(false)
		tracer, err := lookuptrace.New(rudeIO{r}, nil)
		require.NoError(t, err)
		r.Armed.Store(true)
		db.TraceLookups(tracer)
		_, _ = db.Get([]byte("k1"))
		db.TraceLookups(nil)
		if tracer.Close() == nil {
			t.Error("the trace is said to be whole")
		}
	}},
	{name: "function of View", act: func(_ *testing.T, db *DB, r *rudeness) {
		_ = db.View(func(tx *Tx) error { r.Act(); return nil })
	}},
	{name: "function of Update", act: func(_ *testing.T, db *DB, r *rudeness) {
		_ = db.Update(func(tx *Tx) error { r.Act(); return nil })
	}},
	{name: "loop over All", act: func(_ *testing.T, db *DB, r *rudeness) {
		var err error
		for range db.All(nil, &err) {
			r.Act()
		}
	}},
}

func scannedAll(_ *testing.T, db *DB, _ *rudeness) {
	var err error
	for range db.All(nil, &err) {
	}
}

// stalled has a writer wait for a flush.
func stalled(_ *testing.T, db *DB, r *rudeness) {
	stopFlushes(db, true)
	var writer sync.WaitGroup
	writer.Go(func() {
		for !r.Called.Load() {
			_ = db.Set([]byte("k0"), []byte("k0"+strings.Repeat("x", 20<<10)), Async)
		}
		_ = db.Set([]byte("k0"), []byte("k0"), Async)
	})
	storetest.Until(func() bool {
		db.progress.Broadcast()
		return r.Called.Load()
	})
	stopFlushes(db, false)
	db.reschedule(db.scheduleFlush)
	writer.Wait()
}

// syncFails has the sync of a writer fail.
func syncFails(_ *testing.T, db *DB, _ *rudeness) {
	f := db.opts.harness.FS.(*vfstest.FaultFS)
	f.Set(func(c vfstest.Call) (int, error) {
		if c.Op == "sync" {
			return 0, errDisk
		}
		return 0, nil
	})
	_ = db.Set([]byte("failed"), []byte("1"), nil)
	f.Set(nil)
}

// validated has a transaction validated, which reads a key of a table that is newer than it.
func validated(t *testing.T, db *DB, r *rudeness) {
	tx, err := db.Begin(true)
	require.NoError(t, err)
	defer func() { _ = tx.Discard() }()
	r.Armed.Store(false)
	_, _ = tx.Get([]byte("k1x"))
	_ = tx.Set([]byte("k1"), []byte("1"))
	require.NoError(t, db.Set([]byte("k1w"), nil, nil))
	require.NoError(t, db.Set([]byte("k1z"), nil, nil))
	require.NoError(t, db.Flush(t.Context()))
	r.Armed.Store(true)
	_ = tx.Commit(nil)
}

// tombstonesFlushed flushes a table whose range tombstones have it opened.
func tombstonesFlushed(_ *testing.T, db *DB, _ *rudeness) {
	_ = db.DeleteRange([]byte("l"), []byte("m"), nil)
	_ = db.Set([]byte("l"), nil, nil)
	_ = db.Flush(context.Background())
}

// askedBeside has goroutines of a MultiGet ask filters: of a key whose versions go on in the block after that which
// they have read.
func askedBeside(t *testing.T, db *DB, _ *rudeness) {
	var keys [][]byte
	for i := range 20 {
		keys = append(keys, fmt.Appendf(nil, "b%02d", i))
		require.NoError(t, db.Set(keys[i], make([]byte, 100), NoSync))
	}
	s := db.NewSnapshot()
	defer s.Close()
	for _, k := range keys {
		require.NoError(t, db.Set(k, make([]byte, 100), NoSync))
	}
	require.NoError(t, db.Flush(t.Context()))
	db.opts.harness.FS.(*vfstest.FaultFS).Set(func(c vfstest.Call) (int, error) {
		if c.Op == "read" {
			time.Sleep(time.Millisecond) // as a device does: others read at the same time
		}
		return 0, nil
	})
	defer db.opts.harness.FS.(*vfstest.FaultFS).Set(nil)
	_, _ = s.MultiGet(keys)
}

func rudeClock(o *Options, r *rudeness) {
	o.Clock = func() time.Time { r.Act(); return time.Now() }
}

func rudeMerger(o *Options, r *rudeness) {
	o.Merger = NewMerger("rude", func(key, older, newer []byte) ([]byte, error) {
		r.Act()
		return Int64Add.Merge(key, older, newer)
	})
}

// A rudeHandler is the handler of a logger.
type rudeHandler struct{ *rudeness }

func (h rudeHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (h rudeHandler) Handle(context.Context, slog.Record) error { h.Act(); return nil }
func (h rudeHandler) WithAttrs([]slog.Attr) slog.Handler        { return h }
func (h rudeHandler) WithGroup(string) slog.Handler             { return h }

// A rudeIO is a reader of zeros, and a writer.
type rudeIO struct{ *rudeness }

func (i rudeIO) Read(b []byte) (int, error)  { i.Act(); return len(b), nil }
func (i rudeIO) Write(b []byte) (int, error) { i.Act(); return len(b), nil }

// A rudePolicy is a filter policy one of whose functions leaves.
type rudePolicy struct {
	ownFilter
	*rudeness
	when string
}

func (p rudePolicy) at(when string) {
	if p.when == when {
		p.Act()
	}
}

func rudeFilter(when string) func(o *Options, r *rudeness) {
	return func(o *Options, r *rudeness) { o.Filter = rudePolicy{ownFilter{mustParse("bloom:10")}, r, when} }
}

func (p rudePolicy) String() string { p.at("string"); return p.ownFilter.String() }

func (p rudePolicy) NewBuilder() filterpolicy.Builder {
	p.at("new")
	return rudeBuilder{p.ownFilter.NewBuilder(), p}
}

func (p rudePolicy) Decode(data []byte) (filterpolicy.Filter, error) {
	p.at("decode")
	f, err := p.ownFilter.Decode(data)
	return rudePointFilter{f, p}, err
}

type rudeBuilder struct {
	filterpolicy.Builder
	p rudePolicy
}

func (b rudeBuilder) AddHash(h uint64) { b.p.at("add"); b.Builder.AddHash(h) }

func (b rudeBuilder) Finish(dst []byte) ([]byte, bool) {
	b.p.at("finish")
	return b.Builder.Finish(dst)
}

type rudePointFilter struct {
	filterpolicy.Filter
	p rudePolicy
}

func (f rudePointFilter) MayContainHash(h uint64) bool {
	f.p.at("ask")
	return f.Filter.MayContainHash(h)
}

// A rudeRangePolicy is rudePolicy for ranges.
type rudeRangePolicy struct {
	exactranges.Policy
	*rudeness
	when string
}

func rudeRanges(when string) func(o *Options, r *rudeness) {
	return func(o *Options, r *rudeness) {
		o.RangeFilter, o.RangeFilterLastLevel = rudeRangePolicy{rudeness: r, when: when}, true
	}
}

func (p rudeRangePolicy) at(when string) {
	if p.when == when {
		p.Act()
	}
}

func (p rudeRangePolicy) NewRangeBuilder() filterpolicy.RangeBuilder {
	return rudeRangeBuilder{p.Policy.NewRangeBuilder(), p}
}

func (p rudeRangePolicy) DecodeRange(data []byte) (filterpolicy.RangeFilter, error) {
	f, err := p.Policy.DecodeRange(data)
	return rudeRangeFilter{f, p}, err
}

type rudeRangeBuilder struct {
	filterpolicy.RangeBuilder
	p rudeRangePolicy
}

func (b rudeRangeBuilder) AddKey(key []byte) { b.p.at("add"); b.RangeBuilder.AddKey(key) }

type rudeRangeFilter struct {
	filterpolicy.RangeFilter
	p rudeRangePolicy
}

func (f rudeRangeFilter) MayContainRange(lo, hi []byte) bool {
	f.p.at("ask")
	return f.RangeFilter.MayContainRange(lo, hi)
}

type rudePrefixer struct{ *rudeness }

func rudePrefix(o *Options, r *rudeness) { o.Prefix = rudePrefixer{r} }

func (p rudePrefixer) Name() string {
	if p.Within != "" {
		p.Act()
	}
	return "rude"
}

func (p rudePrefixer) Prefix(key []byte) ([]byte, bool) {
	p.Act()
	return key[:1], true
}

// Whatever a function of the application does, Set, Get, Flush and Close return afterwards, and nothing that was
// acknowledged is lost.
func TestFunctionsOfTheApplicationMayNotReturn(t *testing.T) {
	t.Parallel()
	for _, c := range callbackTests {
		for name, leave := range map[string]func(){"panic": func() { panic("boom") }, "goexit": runtime.Goexit} {
			lasting := c.failsForGood && name == "goexit"
			t.Run(c.name+" "+name, func(t *testing.T) {
				t.Parallel()
				r := &rudeness{Leave: leave}
				c.run(t, r, lasting)
			})
		}
	}
}

func (c *callbackTest) run(t *testing.T, r *rudeness, lasting bool) {
	fs := &vfstest.FaultFS{FS: vfs.NewMem()}
	o := Options{harness: harness.Harness{FS: fs, Backoff: quickBackoff}, MemtableSize: 64 << 10}
	if c.set != nil {
		c.set(&o, r)
	}
	db, err := Open("db", &o)
	require.NoError(t, err)
	want := storetest.Acknowledge(t, db, Sync)
	if o.Merger != nil {
		for range 5 {
			require.NoError(t, db.Merge([]byte("counter"), AppendInt64(nil, 1), nil))
		}
		want["counter"] = string(AppendInt64(nil, 5))
	}
	state := db.state.Load()
	r.Armed.Store(true)
	storetest.SoonOrLeaves(t, c.name, func() { c.act(t, db, r) })
	r.Armed.Store(false)
	require.True(t, r.Called.Load(), "the function was called")
	if state == db.state.Load() {
		for i := range state.refs {
			require.Zero(t, state.refs[i].n.Load(), "a read has given its state back")
		}
	}

	storetest.Soon(t, "a read", func() { storetest.RequireAcknowledged(t, want, db.Get) })
	if lasting {
		storetest.Soon(t, "Set", func() { require.ErrorIs(t, db.Set([]byte("after"), []byte("1"), nil), ErrReadOnly) })
		storetest.Soon(t, "Flush", func() { require.ErrorIs(t, db.Flush(t.Context()), ErrReadOnly) })
	} else {
		storetest.Soon(t, "Set", func() {
			storetest.Until(func() bool {
				return db.Set([]byte("after"), []byte("1"), nil) == nil
			})
		})
		want["after"] = "1"
		storetest.Soon(t, "Flush", func() { storetest.Until(func() bool { return db.Flush(t.Context()) == nil }) })
		storetest.Soon(t, "Compact", func() {
			storetest.Until(func() bool { return db.Compact(t.Context(), nil, nil) == nil })
		})
		storetest.RequireAcknowledged(t, want, db.Get)
	}
	storetest.Soon(t, "Close", func() {
		if err := db.Close(); lasting {
			require.ErrorIs(t, err, ErrReadOnly)
		} else if err != nil {
			t.Error(err)
		}
	})
	db, err = Open("db", &o)
	require.NoError(t, err)
	storetest.RequireAcknowledged(t, want, db.Get)
	require.NoError(t, db.Close())
}

// Open gives back what it holds if a function of the application panics in it.
func TestOpenMayPanic(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := &rudeness{Leave: func() { panic("boom") }}
	names := 0
	o := Options{Merger: namedMerger{Int64Add, func() {
		if names++; names > 3 {
			r.Act()
		}
	}}}
	r.Armed.Store(true)
	require.PanicsWithValue(t, "boom", func() { _, _ = Open(dir, &o) })
	r.Armed.Store(false)
	db, err := Open(dir, &o)
	require.NoError(t, err, "the lock was given back")
	require.NoError(t, db.Close())
}

// A namedMerger is a merger whose name is asked.
type namedMerger struct {
	Merger
	asked func()
}

func (m namedMerger) Name() string { m.asked(); return m.Merger.Name() }
