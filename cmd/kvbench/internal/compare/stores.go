package compare

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// A store is one engine with one compression, in a process of its own.
type store struct {
	engine      string
	compression string // "" if the engine has none: one store stands for all
	dir         string
	child       *child
}

// find returns the store of an engine with a compression, if it exists.
func (x *run) find(name, compression string) *store {
	if !engine.Compresses(name) {
		compression = ""
	}
	for _, s := range x.stores {
		if s.engine == name && s.compression == compression {
			return s
		}
	}
	return nil
}

// build loads the stores of a compression and leaves them settled and open.
func (x *run) build(ctx context.Context, compression string) ([]*store, error) {
	var stores, missing []*store
	for _, name := range x.config.Engines {
		s := x.find(name, compression)
		if s == nil { // else it was loaded before
			s = &store{engine: name, compression: compression}
			if !engine.Compresses(name) {
				s.compression = ""
			}
			missing = append(missing, s)
			x.stores = append(x.stores, s)
		}
		stores = append(stores, s)
	}
	for rep := range x.config.Loads {
		for i := range missing {
			s := missing[(i+rep)%len(missing)]
			if rep > 0 && !engine.LogStructured(s.engine) {
				continue
			}
			if err := x.load(ctx, s, compression, rep); err != nil {
				return nil, err
			}
		}
	}
	return stores, nil
}

// load fills a new store of s, in a new process, and settles it.
func (x *run) load(ctx context.Context, s *store, compression string, rep int) error {
	if s.child != nil {
		if err := s.child.stop(ctx); err != nil {
			return err
		}
		if err := os.RemoveAll(s.dir); err != nil {
			return err
		}
	}
	c := x.config
	s.dir = filepath.Join(x.dir, fmt.Sprintf("%s-%s-%d", s.engine, compression, rep))
	var err error
	if s.child, err = startChild(ctx, s.engine, c.Worker); err != nil {
		return err
	}
	phase := c.Progress.Start(fmt.Sprintf("load %s, %s", s.engine, compression), c.Keys, "keys")
	open := opening(x.settings(loading, compression))
	before, err := s.child.steps(ctx, x.startTask(s), open, task{Do: "sizes"}, task{Do: "load"})
	if err != nil {
		return err
	}
	if err := x.lookUpUnsettled(ctx, s, compression, rep); err != nil {
		return err
	}
	// Opened again, the store has no memtable left.
	after, err := s.child.steps(ctx, task{Do: "settle"}, task{Do: "sizes"}, open, task{Do: "resettle"},
		task{Do: "sizes"})
	if err != nil {
		return err
	}
	first, loaded, settled, last, sizes := before[2], before[3], after[0], after[1], after[4]
	phase.Done()
	done := Sample{
		Operations: int64(c.Keys), Seconds: loaded.Seconds + settled.Seconds,
		PerSecond:  float64(c.Keys) / (loaded.Seconds + settled.Seconds),
		CPUSeconds: loaded.CPUSeconds + settled.CPUSeconds,
		Written:    last.Written - first.Written, OnDisk: sizes.OnDisk, Files: sizes.Files,
		Peak: last.Peak, Base: last.Base,
	}
	of, data := tidy.Of("engine", s.engine, "compression", compression), float64(c.dataBytes())
	x.result.Append(of, "load", "s", loaded.Seconds)    // until the last batch was accepted
	x.result.Append(of, "settle", "s", settled.Seconds) // from then on, without the lookups in between
	x.result.Append(of, "processor-time", "s", done.CPUSeconds)
	x.result.Append(of, "written", "bytes of data", float64(done.Written)/data)
	x.result.Append(of, "disk", "bytes of data", float64(done.OnDisk)/data) // settled, and opened again
	x.result.Append(of, "files", "", float64(done.Files))
	for _, p := range x.of(loading) {
		x.add(p, s.engine, compression, done)
	}
	return nil
}

// startTask tells a worker which store it has.
func (x *run) startTask(s *store) task {
	c := x.config
	return task{Do: "start", Start: &startTask{
		Engine: s.engine, Dir: []byte(s.dir), Keys: c.Keys, KeySize: c.KeySize, ValueSize: c.ValueSize, Seed: c.Seed,
	}}
}

// restart runs the fresh stage: in each repetition every store gets a new process,
// which opens it, looks keys up for a while, and then says how much memory it has.
func (x *run) restart(ctx context.Context, compression string, stores []*store) error {
	chosen := x.of(fresh)
	for rep := range x.config.Repetitions {
		if len(chosen) == 0 {
			return nil
		}
		phase := x.config.Progress.Start("open, memory", 0, "")
		for i := range stores {
			s := stores[(i+rep)%len(stores)]
			err := s.child.stop(ctx)
			if err != nil {
				return err
			}
			if s.child, err = startChild(ctx, s.engine, x.config.Worker); err != nil {
				return err
			}
			samples, err := s.child.steps(ctx, x.startTask(s), opening(x.settings(fresh, compression)),
				lookingUp("warmup", 2*x.config.Seconds, 0), task{Do: "sizes"})
			if err != nil {
				return err
			}
			for _, p := range chosen {
				sample := samples[1]
				if p.Name == "memory" {
					sample = samples[3]
				}
				x.add(p, s.engine, compression, *sample)
			}
		}
		phase.Done()
	}
	return nil
}

// lookUpUnsettled runs the phases of a store that compacts.
func (x *run) lookUpUnsettled(ctx context.Context, s *store, compression string, rep int) error {
	for _, p := range x.of(unsettled) {
		j := p.job
		j.Seconds, j.Pass = min(x.config.Seconds, 0.3), uint64(rep)
		sample, err := s.child.do(ctx, task{Do: "job", Job: &j})
		if err != nil {
			return err
		}
		x.add(p, s.engine, compression, *sample)
	}
	return nil
}
