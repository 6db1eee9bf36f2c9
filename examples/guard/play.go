package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/siftkv/siftkv/examples/guard/internal/guard"
	"github.com/siftkv/siftkv/examples/guard/internal/load"
	"github.com/siftkv/siftkv/examples/guard/internal/meter"
	"github.com/siftkv/siftkv/examples/guard/internal/page"
	"github.com/siftkv/siftkv/examples/guard/internal/term"
)

// warmUp is how long a load waits at most for the filters to be loaded.
const warmUp = 5 * time.Minute

// scenario returns which load is to be played, and for how long; 0 if none is.
func (f *flags) scenario() (load.Scenario, time.Duration) {
	switch {
	case f.Attack > 0:
		return load.Attack, f.Attack
	case f.Cold > 0:
		return load.Cold, f.Cold
	}
	return load.Normal, f.Normal
}

// load is how loads are played against the service at base. Each run of the program
// has its own seed: names that were signed up before are taken.
func (f *flags) load(g *guard.Guard, base string) load.Config {
	return load.Config{
		Base: base, Users: f.Users, Rate: f.Visitors, EmptyCache: g.Cache.Clear, Seed: rand.Uint64(),
	}
}

// play plays a load against the service at base, and shows it on out. The error wraps
// load.ErrWrong if the service gave wrong answers.
func play(ctx context.Context, f flags, g *guard.Guard, base string, out io.Writer) error {
	ready, cancel := context.WithTimeout(ctx, warmUp)
	defer cancel()
	g.Logger.Info("waiting for the filters to be loaded")
	if err := g.Filters.Ready(ready); err != nil {
		return fmt.Errorf("wait for the filters: %w", err)
	}
	scenario, d := f.scenario()
	config := f.load(g, base)
	config.Scenario, config.For = scenario, d
	if scenario == load.Attack {
		return term.Attack{Out: out, Counters: g.Counters.Snapshot, Load: config, Filter: g.Switch.Set}.Run(ctx)
	}
	_, _, err := term.Play(ctx, out, string(scenario), meter.New(g.Counters.Snapshot), config)
	return err
}

// showPage adds the live page to the service's routes. What it returns ends the page.
func showPage(ctx context.Context, f flags, g *guard.Guard, base string, mux *http.ServeMux) (end func()) {
	p := page.New(page.Config{
		Counters: g.Counters.Snapshot, Load: f.load(g, base), Filter: &g.Switch, Promise: f.Rate,
	})
	p.Register(mux)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}
