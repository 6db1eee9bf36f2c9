package compare

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// A coldStore is one engine with one number of keys.
type coldStore struct {
	config  *ColdConfig
	engine  string
	variant variant
	keys    int
	dir     string
}

// point measures the store, and removes it. It has a process to be loaded in, one to be
// settled in, and one for the lookups in each of its trees.
func (s *coldStore) point(ctx context.Context) (p *ColdPoint, err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	p = &ColdPoint{Engine: s.engine, Variant: s.variant.name, Keys: s.keys}
	sizes := task{Do: "sizes"}
	loaded, err := s.in(ctx, "load", s.engine, opening(s.settings()), sizes, task{Do: "load"}, task{Do: "calm"}, sizes)
	if err != nil {
		return nil, err
	}
	before, load, calm, after := loaded[1], loaded[2], loaded[3], loaded[4]
	p.LoadSeconds, p.CalmSeconds = load.Seconds, calm.Seconds
	p.CPUSeconds = load.CPUSeconds + calm.CPUSeconds
	p.WrittenBytes, p.PeakDisk, p.PeakMemory = after.Written-before.Written, after.PeakDisk, after.Peak
	if err := s.ask(ctx, p, TreeCalm); err != nil {
		return nil, err
	}
	settled, err := s.in(ctx, "settle", s.engine, opening(s.settings()), sizes, task{Do: "settle"}, sizes)
	if err != nil {
		return nil, err
	}
	before, after = settled[1], settled[3]
	p.SettleSeconds, p.SettleWritten = settled[2].Seconds, after.Written-before.Written
	p.PeakDisk = max(p.PeakDisk, after.PeakDisk)
	return p, s.ask(ctx, p, TreeSettled)
}

// settings returns those of every process that has the store.
func (s *coldStore) settings() engine.Settings {
	o := s.variant.apply(s.config.Store.WithMemoryLimit(s.config.Memory), s.keys)
	o.BatchKeys, o.Durability, o.CountReads = batchKeys, engine.Soon, true
	return o
}

// in carries out tasks in a new process, in which the store is that of a named engine.
func (s *coldStore) in(ctx context.Context, what, name string, tasks ...task) ([]*Sample, error) {
	p := ColdPoint{Engine: name, Variant: s.variant.name}
	phase := s.config.Progress.Start(fmt.Sprintf("%s %s", what, p.Name()), s.keys, "keys")
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
func (s *coldStore) ask(ctx context.Context, p *ColdPoint, tree string) error {
	names := []string{s.engine}
	if s.engine == "pebble" {
		names = append(names, engine.PebbleIteratorName)
	}
	for _, name := range names {
		state, err := s.askAs(ctx, name, tree)
		if err != nil {
			return err
		}
		p.States = append(p.States, *state)
	}
	return nil
}

// askAs asks the store as a named engine does.
func (s *coldStore) askAs(ctx context.Context, name, tree string) (*ColdState, error) {
	lookUp := func(kind string, pass uint64) task {
		return task{Do: "job", Job: &job{Kind: "cold-" + kind, Lookups: s.config.Lookups, Pass: pass}}
	}
	samples, err := s.in(ctx, "look up, "+tree+", in", name, task{Do: "drop"}, opening(s.settings()),
		lookUp("absent", 0), lookUp("existing", 0), // filters, indexes and some blocks come into the store's memory
		lookUp("absent", 1), lookUp("existing", 1), task{Do: "sizes"}, task{Do: "tree"})
	if err != nil {
		return nil, err
	}
	opened, sizes, shape := samples[1], samples[6], samples[7].Tree
	return &ColdState{
		Engine: name, Tree: tree, Shape: shape.Shape, DiskBytes: sizes.OnDisk, OpenSeconds: opened.Seconds,
		Usage:      shape.Usage,
		PeakMemory: sizes.Peak, BaseMemory: sizes.Base,
		Absent: coldLookups(samples[4]), Existing: coldLookups(samples[5]),
	}, nil
}

func coldLookups(s *Sample) ColdLookups {
	return ColdLookups{Lookups: s.Operations, Reads: *s.Cold, P50: s.P50, P99: s.P99, P999: s.P999, Max: s.Max}
}
