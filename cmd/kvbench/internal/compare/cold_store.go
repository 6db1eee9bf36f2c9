package compare

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// A coldStore is one engine with one number of keys.
type coldStore struct {
	config  *ColdConfig
	result  *tidy.Result
	engine  string
	variant variant
	keys    int
	dir     string
}

// name is that of an engine that asks the store, with the variant.
func (s *coldStore) name(engine string) string {
	if s.variant.name == "" || s.variant.name == UsualVariant {
		return engine
	}
	return engine + " " + s.variant.name
}

// point measures the store, and removes it. It has a process to be loaded in, one to be
// settled in, and one for the lookups in each of its trees.
func (s *coldStore) point(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	sizes := task{Do: "sizes"}
	loaded, err := s.in(ctx, "load", s.engine, opening(s.settings()), sizes, task{Do: "load"}, task{Do: "calm"}, sizes)
	if err != nil {
		return err
	}
	if err := s.ask(ctx, TreeCalm); err != nil {
		return err
	}
	settled, err := s.in(ctx, "settle", s.engine, opening(s.settings()), sizes, task{Do: "settle"}, sizes)
	if err != nil {
		return err
	}
	before, load, calm, after := loaded[1], loaded[2], loaded[3], loaded[4]
	add := s.adder(tidy.Of("engine", s.name(s.engine), "keys", s.keys))
	add("data", "bytes", float64(s.config.dataBytes(s.keys)))
	add("load", "s", load.Seconds) // until the last batch was accepted
	add("calm", "s", calm.Seconds) // from then on, until there was nothing left to compact
	add("settle", "s", settled[2].Seconds)
	add("processor-time", "s", load.CPUSeconds+calm.CPUSeconds) // of these two, as are the next
	add("written", "bytes", float64(after.Written-before.Written))
	add("peak-memory", "bytes", float64(after.Peak))
	add("settle-written", "bytes", float64(settled[3].Written-settled[1].Written))
	add("peak-disk", "bytes", float64(max(after.PeakDisk, settled[3].PeakDisk)))
	return s.ask(ctx, TreeSettled)
}

// adder returns what adds one number of a cell.
func (s *coldStore) adder(of tidy.Cell) func(metric, unit string, x float64) {
	return func(metric, unit string, x float64) { s.result.Add(of, metric, unit, x) }
}

// settings returns those of every process that has the store.
func (s *coldStore) settings() engine.Settings {
	o := s.variant.apply(s.config.Store.WithMemoryLimit(s.config.Memory), s.keys)
	o.BatchKeys, o.Durability, o.CountReads = batchKeys, engine.Soon, true
	return o
}

// in carries out tasks in a new process, in which the store is that of a named engine.
func (s *coldStore) in(ctx context.Context, what, name string, tasks ...task) ([]*Sample, error) {
	phase := s.config.Progress.Start(fmt.Sprintf("%s %s", what, s.name(name)), s.keys, "keys")
	samples, err := inProcess(ctx, s.config.Worker, startTask{
		Engine: name, Dir: []byte(s.dir), Keys: s.keys, KeySize: s.config.KeySize, ValueSize: s.config.ValueSize,
		Seed: s.config.Seed, Chill: true,
	}, tasks)
	if err == nil {
		phase.Done()
	}
	return samples, err
}

// ask opens the store with nothing in the page cache and looks keys up: a store of Pebble
// by Get, which does not ask the filters of the last level, and by an iterator that does.
func (s *coldStore) ask(ctx context.Context, tree string) error {
	names := []string{s.engine}
	if s.engine == "pebble" {
		names = append(names, engine.PebbleIteratorName)
	}
	for _, name := range names {
		if err := s.askAs(ctx, name, tree); err != nil {
			return err
		}
	}
	return nil
}

// askAs asks the store as a named engine does, and adds a cell for the store in its tree.
func (s *coldStore) askAs(ctx context.Context, name, tree string) error {
	lookUp := func(kind string, pass uint64) task {
		return task{Do: "job", Job: &job{Kind: "cold-" + kind, Lookups: s.config.Lookups, Pass: pass}}
	}
	samples, err := s.in(ctx, "look up, "+tree+", in", name, task{Do: "drop"}, opening(s.settings()),
		lookUp("absent", 0), lookUp("existing", 0), // filters, indexes and some blocks come into the store's memory
		lookUp("absent", 1), lookUp("existing", 1), task{Do: "sizes"}, task{Do: "tree"})
	if err != nil {
		return err
	}
	opened, sizes, about := samples[1], samples[6], samples[7].Tree
	add := s.adder(tidy.Of("engine", s.name(name), "tree", tree, "keys", s.keys))
	known := func(metric, unit string, n engine.Count, of float64) {
		if n.Known() {
			add(metric, unit, float64(n)/of)
		}
	}
	add("open", "s", opened.Seconds)
	add("runs", "", float64(about.Shape.Runs))
	add("files", "", float64(about.Shape.Files))
	add("entries", "", float64(about.Shape.Entries))
	add("disk", "bytes", float64(sizes.OnDisk))
	add("filters", "bits/key", about.Shape.BitsPerKey())
	add("indexes", "bytes", float64(about.Shape.IndexBytes))
	known("filter-memory", "bytes", about.Usage.FilterMemory, 1)
	known("index-memory", "bytes", about.Usage.IndexMemory, 1)
	known("cache-memory", "bytes", about.Usage.CacheMemory, 1)
	add("peak-memory", "bytes", float64(sizes.Peak))
	add("base-memory", "bytes", float64(sizes.Base)) // before the store was opened
	for i, kind := range []string{"absent", "existing"} {
		l := samples[4+i]
		n := float64(l.Operations)
		add(kind+" lookups", "", n)
		known(kind+" reads", "per lookup", l.Cold.Files.Calls, n)
		known(kind+" bytes", "per lookup", l.Cold.Files.Bytes, n)
		known(kind+" device-bytes", "per lookup", l.Cold.DeviceBytes, n)
		known(kind+" requests", "per lookup", l.Cold.Requests, n)
		for _, q := range []struct {
			name  string
			nanos int64
		}{{" p50", l.P50}, {" p99", l.P99}, {" p99.9", l.P999}, {" max", l.Max}} {
			add(kind+q.name, "ns", float64(q.nanos))
		}
	}
	return nil
}
