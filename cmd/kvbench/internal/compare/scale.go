package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// ScaleSchema names the JSON form of a ScaleResult.
const ScaleSchema = "kvbench.scale/v1"

// A ScaleConfig says what to measure. Every field is needed.
type ScaleConfig struct {
	ScaleSettings
	Setup
	Engines []string // of engine.Peers
	Sizes   []int    // numbers of keys
}

// ScaleSettings are those of a run.
type ScaleSettings struct {
	KeySize     int             `json:"key_bytes"`
	ValueSize   int             `json:"value_bytes"`
	CacheShare  float64         `json:"cache_share"` // block cache, as a part of the data: the same at every size
	Repetitions int             `json:"repetitions"`
	Seconds     float64         `json:"seconds"` // of each kind of lookup and repetition
	Seed        uint64          `json:"seed"`
	Store       engine.Settings `json:"store"` // CacheBytes is not used
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
	ScaleSettings
	Points      []Point `json:"points"` // by engine, then by size
	WallSeconds float64 `json:"wall_seconds"`
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
	// Memory of the process after the lookups, without that of a process with no store.
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

func (c *ScaleConfig) validate() error {
	if c.CacheShare <= 0 || c.CacheShare > 4 {
		return bench.Usagef("--cache-share %g: want more than 0, up to 4", c.CacheShare)
	}
	store := c.Store
	store.CacheBytes = leastCache(store)
	return cmp.Or(checkEngines(c.Engines), checkStores(c.Sizes, c.KeySize, c.ValueSize, store),
		bench.CheckBounds(bench.Bound{Flag: "--reps", Value: int64(c.Repetitions), Low: 1, High: 1000}),
		bench.CheckSeconds(c.Seconds))
}

// Scale measures every engine at every size, one store at a time. Stores are in a
// temporary directory and gone, like their processes, when it returns.
func Scale(ctx context.Context, c *ScaleConfig) (*ScaleResult, error) {
	started := time.Now()
	err := c.validate()
	if err != nil {
		return nil, err
	}
	r := &ScaleResult{Schema: ScaleSchema, ScaleSettings: c.ScaleSettings}
	err = c.inTemporary("scale", func(dir string) error {
		r.Environment = c.environment(dir)
		for _, name := range c.Engines {
			for _, n := range c.Sizes {
				p, err := c.point(ctx, name, n, filepath.Join(dir, fmt.Sprintf("%s-%d", name, n)))
				if err != nil {
					return fmt.Errorf("%d keys: %w", n, err)
				}
				r.Points = append(r.Points, *p)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.WallSeconds = time.Since(started).Seconds()
	return r, nil
}

// point measures one engine with n keys, and removes its store. The store has a new
// process to be loaded in, to show what it keeps in memory, and to be asked.
func (c *ScaleConfig) point(ctx context.Context, name string, n int, dir string) (p *Point, err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	settings := c.Store
	settings.BatchKeys, settings.Durability = batchKeys, engine.Soon
	least := leastCache(c.Store)
	settings.CacheBytes = max(least, int64(c.CacheShare*float64(n)*float64(c.KeySize+c.ValueSize)))
	p = &Point{Engine: name, Keys: n, CacheBytes: settings.CacheBytes}
	in := func(tasks ...task) ([]*Sample, error) {
		return inProcess(ctx, c.Worker, startTask{
			Engine: name, Dir: []byte(dir), Keys: n, KeySize: c.KeySize, ValueSize: c.ValueSize, Seed: c.Seed,
		}, tasks)
	}
	phase := c.Progress.Start("load "+name, n, "keys")
	loaded, err := in(opening(settings), task{Do: "load"}, task{Do: "settle"})
	if err != nil {
		return nil, err
	}
	p.LoadSeconds = loaded[1].Seconds + loaded[2].Seconds
	phase.Done()
	phase = c.Progress.Start("look up in "+name, 0, "")
	bare := settings
	bare.CacheBytes, bare.MemtableBytes = least, 64<<10
	kept, err := in(opening(bare), lookingUp("absent", c.Seconds, 0), task{Do: "pinned"})
	if err != nil {
		return nil, err
	}
	p.keeps(kept[2])
	tasks := []task{opening(settings), lookingUp("warmup", 4*c.Seconds, 0)}
	for _, kind := range []string{"absent", "existing", "zipfian"} {
		for rep := range c.Repetitions {
			tasks = append(tasks, lookingUp(kind, c.Seconds, rep+1))
		}
	}
	asked, err := in(append(tasks, task{Do: "sizes"})...)
	if err != nil {
		return nil, err
	}
	phase.Done()
	for i, into := range []*Time{&p.Absent, &p.Existing, &p.Zipfian} {
		*into = timeOf(asked[2+i*c.Repetitions:][:c.Repetitions])
	}
	last := asked[len(asked)-1]
	p.Resident = max(0, last.Resident-last.Base)
	p.LoadNs = float64(DependentLoad(cmp.Or(p.Filters+p.Indexes, p.Resident)).Nanoseconds())
	return p, nil
}

// keeps notes what a store keeps that has next to no cache and memtable, and of which
// all filters have been used.
func (p *Point) keeps(m *Sample) {
	p.Filters, p.Indexes = m.Memory.Filters, m.Memory.Indexes
	p.Other = max(0, m.Heap-m.BaseHeap-p.Filters-p.Indexes-m.Memory.Cache)
	p.Pinned = max(0, m.Anon-m.BaseAnon)
	p.DiskBytes, p.Files = m.OnDisk, m.Files
}

// timeOf returns the processor time of one operation, which other processes disturb less
// than the wall time; that, where the first is not measured.
func timeOf(samples []*Sample) Time {
	var times []float64
	for _, s := range samples {
		if s.CPUSeconds > 0 {
			times = append(times, 1e9*s.CPUSeconds/float64(s.Operations))
		} else {
			times = append(times, 1e9/s.PerSecond)
		}
	}
	return Time{Median: measure.Median(times), Low: slices.Min(times), High: slices.Max(times)}
}
