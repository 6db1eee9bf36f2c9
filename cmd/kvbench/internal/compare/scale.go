package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/filterpolicy"
)

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

func (c *Config) validateScale() error {
	if c.CacheShare <= 0 || c.CacheShare > 4 {
		return bench.Usagef("--cache-share %g: want more than 0, up to 4", c.CacheShare)
	}
	store := c.Store
	store.CacheBytes = leastCache(store)
	return cmp.Or(checkEngines(c.Engines), checkStores(c.Sizes, c.KeySize, c.ValueSize, store),
		c.checkTurns())
}

// scaleKinds are the kinds of lookups of Scale.
var scaleKinds = []string{"absent", "existing", "zipfian"}

// Scale measures every engine at every size, one store at a time. Stores are in a
// temporary directory and gone, like their processes, when it returns.
func Scale(ctx context.Context, c *Config) (*tidy.Result, error) {
	if err := c.validateScale(); err != nil {
		return nil, err
	}
	about := fmt.Sprintf("Cost by number of keys: keys of %d bytes, values of %d bytes, compression %s, cache %g of "+
		"the data, medians of %s of %g s, seed %d", c.KeySize, c.ValueSize, c.Store.Compression, c.CacheShare,
		bench.Times(c.Repetitions, "repetition"), c.Seconds, c.Seed)
	return c.measured("scale", about, c.Settings, func(r *tidy.Result, dir string) error {
		if err := c.checkLargest(dir, 0); err != nil {
			return err
		}
		for _, name := range c.Engines {
			for _, n := range c.Sizes {
				at := filepath.Join(dir, fmt.Sprintf("%s-%d", name, n))
				if err := c.point(ctx, r, tidy.Of("engine", name, "keys", n), name, n, at); err != nil {
					return fmt.Errorf("%d keys: %w", n, err)
				}
			}
		}
		return nil
	})
}

// point measures one engine with n keys, and removes its store. The store has a new
// process to be loaded in, to show what it keeps in memory, and to be asked.
func (c *Config) point(ctx context.Context, r *tidy.Result, of tidy.Cell, name string, n int,
	dir string) (err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	settings := c.Store
	settings.BatchKeys, settings.Durability = batchKeys, engine.Soon
	least := leastCache(c.Store)
	settings.CacheBytes = max(least, int64(c.CacheShare*float64(c.bytesOf(n))))
	in := func(tasks ...task) ([]*Sample, error) {
		return inProcess(ctx, c.Worker, c.start(name, dir, n), tasks)
	}
	phase := c.Progress.Start("load "+name, n, "keys")
	loaded, err := in(opening(settings), task{Do: "load"}, task{Do: "settle"})
	if err != nil {
		return err
	}
	phase.Done()
	phase = c.Progress.Start("look up in "+name, 0, "")
	bare := settings
	bare.CacheBytes, bare.MemtableBytes = least, 64<<10
	kept, err := in(opening(bare), lookingUp("absent", c.Seconds, 0), task{Do: "pinned"})
	if err != nil {
		return err
	}
	tasks := []task{opening(settings), lookingUp("warmup", 4*c.Seconds, 0)}
	for _, kind := range scaleKinds {
		for rep := range c.Repetitions {
			tasks = append(tasks, lookingUp(kind, c.Seconds, rep+1))
		}
	}
	asked, err := in(append(tasks, task{Do: "sizes"})...)
	if err != nil {
		return err
	}
	phase.Done()
	r.Add(of, "load", "s", loaded[1].Seconds+loaded[2].Seconds) // to settled
	for i, kind := range scaleKinds {
		r.Add(of, kind, "ns", cpuTimes(asked[2+i*c.Repetitions:][:c.Repetitions])...)
	}
	last := asked[len(asked)-1]
	resident := max(0, last.Resident-last.Base)
	r.Add(of, "resident", "bytes", float64(resident)) // after the lookups, without a process with no store
	r.Add(of, "cache", "bytes", float64(settings.CacheBytes))
	addKept(r, of, kept[2])
	used := resident
	if filters := kept[2].Tree.Usage.FilterMemory; filters.Known() {
		used = int64(filters + kept[2].Tree.Usage.IndexMemory)
	}
	r.Add(of, "dependent-load", "ns", float64(DependentLoad(used).Nanoseconds()))
	return nil
}

// addKept adds what a store keeps that has next to no cache and memtable, and of which
// all filters have been used. What it does not count of filters and indexes is left out.
func addKept(r *tidy.Result, of tidy.Cell, m *Sample) {
	other := m.Heap - m.BaseHeap // live heap
	if u := m.Tree.Usage; u.FilterMemory.Known() {
		r.Add(of, "filters", "bytes", float64(u.FilterMemory))
		r.Add(of, "indexes", "bytes", float64(u.IndexMemory))
		other -= int64(u.FilterMemory + u.IndexMemory + u.CacheMemory)
	}
	r.Add(of, "other", "bytes", float64(max(0, other)))
	r.Add(of, "pinned", "bytes", float64(max(0, m.Anon-m.BaseAnon)))
	r.Add(of, "disk", "bytes", float64(m.OnDisk))
	r.Add(of, "files", "", float64(m.Files))
}

// cpuTimes returns the processor time of one operation of each sample, which other processes disturb less
// than the wall time; that, where the first is not measured.
func cpuTimes(samples []*Sample) (times []float64) {
	for _, s := range samples {
		if s.CPUSeconds > 0 {
			times = append(times, 1e9*s.CPUSeconds/float64(s.Operations))
		} else {
			times = append(times, 1e9/s.PerSecond)
		}
	}
	return times
}

// UsualVariant is SiftKV with its defaults.
const UsualVariant = "default"

// A variant is SiftKV with other settings than its defaults, by words joined with "+":
// UsualVariant, a filter ("ribbon:10"), "budget:BITS" (a filter budget of that many bits
// per key), "index:SIZE" (indexes larger than that are cut into leaves, which are read on
// demand).
type variant struct {
	name       string
	filter     string
	budgetBits float64
	index      int64
}

func parseVariant(name string) (variant, error) {
	v := variant{name: name}
	for word := range strings.SplitSeq(name, "+") {
		kind, value, _ := strings.Cut(word, ":")
		var err error
		switch kind {
		case UsualVariant:
		case "budget":
			v.budgetBits, err = strconv.ParseFloat(value, 64)
			if err == nil && !(v.budgetBits > 0 && v.budgetBits < 100) {
				err = bench.Usagef("want more than 0 bits per key, and less than 100")
			}
		case "index":
			var size bench.Size
			size, err = bench.ParseSize(value)
			v.index = int64(size)
		default:
			_, err = filterpolicy.Parse(word)
			v.filter = word
		}
		if err != nil {
			return v, bench.Usagef("--variant %s: %s: %w; want %s, a filter such as ribbon:10, budget:BITS, "+
				"index:SIZE, or several of them joined with +", name, word, err, UsualVariant)
		}
	}
	return v, nil
}

func (v variant) apply(s engine.Settings, n int) engine.Settings {
	s.SiftKVFilter, s.SiftKVFilterBudget = v.filter, int64(v.budgetBits*float64(n)/8)
	if v.index > 0 {
		s.SiftKVIndexBytes = int(v.index)
	}
	return s
}
