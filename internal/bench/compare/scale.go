package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/environ"
	"github.com/siftkv/siftkv/internal/bench/measure"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// ScaleSchema names the JSON form of a ScaleResult.
const ScaleSchema = "kvbench.scale/v1"

// A ScaleConfig says what to measure. Every field is needed but Dir and Argv.
type ScaleConfig struct {
	Engines     []string // of engine.Peers
	Sizes       []int    // numbers of keys
	KeySize     int      // bytes
	ValueSize   int      // bytes
	CacheShare  float64  // block cache, as a part of the data: the same at every size
	Repetitions int
	Seconds     float64 // of each kind of lookup and repetition
	Seed        uint64
	Store       engine.Settings // CacheBytes is not used
	Dir         string          // where a temporary directory is made; empty: the system's
	Argv        []string
	Progress    *progress.Reporter
	Worker      []string // as in Config
}

// Sizes returns the numbers of keys up to limit, which is the last if it is none of
// the usual ones.
func Sizes(limit int) []int {
	var sizes []int
	for _, n := range []int{300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000} {
		if n < limit {
			sizes = append(sizes, n)
		}
	}
	return append(sizes, limit)
}

// A ScaleResult is everything a run has found out.
type ScaleResult struct {
	Schema      string              `json:"schema"`
	Environment environ.Environment `json:"environment"`
	KeyBytes    int                 `json:"key_bytes"`
	ValueBytes  int                 `json:"value_bytes"`
	CacheShare  float64             `json:"cache_share"`
	Repetitions int                 `json:"repetitions"`
	Seconds     float64             `json:"seconds"`
	Seed        uint64              `json:"seed"`
	Store       engine.Settings     `json:"store"`
	Points      []Point             `json:"points"` // by engine, then by size
	WallSeconds float64             `json:"wall_seconds"`
}

// A Point is one engine with one number of keys.
type Point struct {
	Engine      string  `json:"engine"`
	Keys        int     `json:"keys"`
	LoadSeconds float64 `json:"load_seconds"` // to settled
	DiskBytes   int64   `json:"disk_bytes"`
	Files       int     `json:"files"`

	// Nanoseconds of processor time per lookup.
	Absent   Time `json:"absent"`
	Existing Time `json:"existing"`
	Zipfian  Time `json:"zipfian"`

	// What an open store without cache and memtable keeps in memory, in bytes.
	Filters int64 `json:"filter_bytes"` // as the store counts; 0 if it does not
	Indexes int64 `json:"index_bytes"`
	Other   int64 `json:"other_bytes"`  // live heap beside these
	Pinned  int64 `json:"pinned_bytes"` // anonymous memory, garbage collected
	// Memory of the process after the lookups, that of an empty one left out.
	Resident   int64 `json:"resident_bytes"`
	CacheBytes int64 `json:"cache_bytes"` // the part of it that the cache may have

	// from as much memory as filters and indexes take, or all of Resident if they are not told
	LoadNs float64 `json:"dependent_load_ns"`
}

// A Time is nanoseconds per lookup, by repetition.
type Time struct {
	Median float64 `json:"median_ns"`
	Low    float64 `json:"low_ns"`
	High   float64 `json:"high_ns"`
}

// Limits of a config.
const (
	minKeys = 1000
	maxKeys = 1 << 30
)

func (c *ScaleConfig) validate() error {
	for _, name := range c.Engines {
		if err := engine.CheckName("--engine", name, engine.Peers()); err != nil {
			return err
		}
	}
	for _, n := range c.Sizes {
		if n < minKeys || n > maxKeys {
			return bench.Usagef("--keys %d: want %d to %d keys", n, minKeys, maxKeys)
		}
	}
	switch {
	case len(c.Engines) == 0 || len(c.Sizes) == 0:
		return bench.Usagef("--engine: nothing to measure; choose from %s", strings.Join(engine.Peers(), ", "))
	case !slices.Contains(Compressions, c.Store.Compression):
		return bench.Usagef("--compression %s: choose from %s", c.Store.Compression,
			strings.Join(Compressions, ", "))
	case c.CacheShare <= 0 || c.CacheShare > 4:
		return bench.Usagef("--cache-share %g: want more than 0, up to 4", c.CacheShare)
	case c.Repetitions < 1 || c.Repetitions > 1000:
		return bench.Usagef("--reps %d: want 1 to 1000", c.Repetitions)
	case c.Seconds <= 0 || c.Seconds > 3600:
		return bench.Usagef("--seconds %g: want more than 0, up to 3600", c.Seconds)
	}
	if info, err := os.Stat(c.Dir); c.Dir != "" && (err != nil || !info.IsDir()) {
		return bench.Usagef("--dir %s: not a directory; create it or choose another", c.Dir)
	}
	return nil
}

// Scale measures every engine at every size, one store at a time. Stores are in a
// temporary directory and gone, like their processes, when it returns.
func Scale(ctx context.Context, c *ScaleConfig) (result *ScaleResult, err error) {
	started := time.Now()
	if err := c.validate(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(c.Dir, "kvbench-scale-*")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the stores: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := &ScaleResult{
		Schema: ScaleSchema, Environment: environ.Capture(c.Argv, dir), KeyBytes: c.KeySize, ValueBytes: c.ValueSize,
		CacheShare: c.CacheShare, Repetitions: c.Repetitions, Seconds: c.Seconds, Seed: c.Seed, Store: c.Store,
	}
	r.Environment.Dir = filepath.Dir(dir)
	for _, name := range c.Engines {
		for _, n := range c.Sizes {
			p, err := c.point(ctx, name, n, filepath.Join(dir, fmt.Sprintf("%s-%d", name, n)))
			if err != nil {
				return nil, fmt.Errorf("%d keys: %w", n, err)
			}
			r.Points = append(r.Points, *p)
		}
	}
	r.WallSeconds = time.Since(started).Seconds()
	return r, nil
}

// point measures one engine with n keys, and removes its store.
func (c *ScaleConfig) point(ctx context.Context, name string, n int, dir string) (p *Point, err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p = &Point{Engine: name, Keys: n}
	spec := LoneSpec{Engine: name, Dir: dir, Keys: n, KeySize: c.KeySize, ValueSize: c.ValueSize,
		Seed: c.Seed, Worker: c.Worker}
	settings := c.Store
	settings.BatchKeys, settings.Durability = 100, engine.Soon
	least := max(64<<10, 8*int64(c.Store.BlockBytes)) // with less, SiftKV's cache keeps no block
	settings.CacheBytes = max(least, int64(c.CacheShare*float64(n)*float64(c.KeySize+c.ValueSize)))
	p.CacheBytes = settings.CacheBytes
	phase := c.Progress.Start("load "+name, n, "keys")
	if err := c.in(ctx, spec, func(l *Lone) error { return p.load(ctx, l, settings) }); err != nil {
		return nil, err
	}
	phase.Done()
	phase = c.Progress.Start("look up in "+name, 0, "")
	bare := settings
	bare.CacheBytes, bare.MemtableBytes = least, 64<<10
	if err := c.in(ctx, spec, func(l *Lone) error { return p.pin(ctx, l, bare, c.Seconds) }); err != nil {
		return nil, err
	}
	if err := c.in(ctx, spec, func(l *Lone) error { return p.lookUp(ctx, l, settings, c) }); err != nil {
		return nil, err
	}
	phase.Done()
	touched := p.Filters + p.Indexes
	if touched == 0 {
		touched = p.Resident
	}
	p.LoadNs = float64(DependentLoad(touched).Nanoseconds())
	return p, nil
}

// in runs f with a new process.
func (c *ScaleConfig) in(ctx context.Context, spec LoneSpec, f func(*Lone) error) error {
	l, err := StartLone(ctx, spec)
	if err != nil {
		return err
	}
	defer l.Kill()
	if err := f(l); err != nil {
		return err
	}
	return l.Stop(ctx)
}

// load fills the store.
func (p *Point) load(ctx context.Context, l *Lone, s engine.Settings) error {
	if _, err := l.Open(ctx, s); err != nil {
		return err
	}
	loaded, settled, err := l.Load(ctx)
	if err != nil {
		return err
	}
	p.LoadSeconds = loaded.Seconds + settled.Seconds
	return nil
}

// pin opens the store with next to no cache and memtable, looks absent keys up so that
// all filters have been used, and measures what it keeps.
func (p *Point) pin(ctx context.Context, l *Lone, s engine.Settings, seconds float64) error {
	if _, err := l.Open(ctx, s); err != nil {
		return err
	}
	if _, err := l.Lookups(ctx, "absent", seconds, 0); err != nil {
		return err
	}
	m, err := l.Pinned(ctx)
	if err != nil {
		return err
	}
	p.Filters, p.Indexes = m.Memory.Filters, m.Memory.Indexes
	p.Other = max(0, m.Heap-m.BaseHeap-p.Filters-p.Indexes-m.Memory.Cache)
	p.Pinned = max(0, m.Anon-m.BaseAnon)
	p.DiskBytes, p.Files = m.OnDisk, m.Files
	return nil
}

// nanoseconds returns the processor time of one operation, which other processes
// disturb less than the wall time; that, where the first is not measured.
func nanoseconds(s *Sample) float64 {
	if s.CPUSeconds > 0 {
		return 1e9 * s.CPUSeconds / float64(s.Operations)
	}
	return 1e9 / s.PerSecond
}

// lookUp times lookups, with a cache that was filled before.
func (p *Point) lookUp(ctx context.Context, l *Lone, s engine.Settings, c *ScaleConfig) error {
	if _, err := l.Open(ctx, s); err != nil {
		return err
	}
	if _, err := l.Lookups(ctx, "warmup", 4*c.Seconds, 0); err != nil {
		return err
	}
	for _, kind := range []struct {
		name string
		into *Time
	}{{"absent", &p.Absent}, {"existing", &p.Existing}, {"zipfian", &p.Zipfian}} {
		var times []float64
		for rep := range c.Repetitions {
			sample, err := l.Lookups(ctx, kind.name, c.Seconds, rep+1)
			if err != nil {
				return err
			}
			times = append(times, nanoseconds(sample))
		}
		*kind.into = Time{Median: measure.Median(times), Low: slices.Min(times), High: slices.Max(times)}
	}
	m, err := l.Sizes(ctx)
	if err != nil {
		return err
	}
	p.Resident = max(0, m.Resident-m.Base)
	return nil
}
