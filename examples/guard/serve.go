package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/siftkv/siftkv/examples/guard/internal/api"
	"github.com/siftkv/siftkv/examples/guard/internal/guard"
	"github.com/siftkv/siftkv/examples/guard/internal/stats"
)

// shutdownTime is how long requests may take to end after the service was asked to.
const shutdownTime = 10 * time.Second

// readyTime is how long a check of readiness may take.
const readyTime = time.Second

// newGuard returns the service as the flags want it.
func newGuard(p *parts, f flags) *guard.Guard {
	g := guard.New(p.Parts, guard.Config{
		FailClosed: f.Fail == "closed", Conns: f.DBConns, Queue: f.DBQueue,
		Timeout: f.Timeout, FilterTimeout: f.RedisTimeout,
	})
	g.Switch.Set(!f.NoFilter)
	return g
}

// serve runs the service until the context ends, or until a load has been played.
func serve(ctx context.Context, f flags, log *slog.Logger, stdout io.Writer) (err error) {
	p, err := openParts(ctx, f, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if f.Drop {
		log.Info("the filters are dropped; processes that use them need to be started again")
		return nil
	}
	g := newGuard(p, f)
	listener, err := net.Listen("tcp", f.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w; name another address by --listen", err)
	}
	base := "http://" + listener.Addr().String()
	mux := handler(g, f)
	if f.Page {
		defer showPage(ctx, f, g, base, mux)()
	}
	server := newServer(mux, log)
	log.Info("serving", "url", base)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if _, d := f.scenario(); d > 0 {
		err = play(ctx, f, g, base, stdout)
	} else {
		go announce(ctx, g)
		select {
		case err = <-served:
			err = fmt.Errorf("serve: %w", err)
		case <-ctx.Done():
		}
	}
	log.Info("ending")
	return errors.Join(err, shutdown(ctx, server))
}

// newServer returns a server that no slow client holds up.
func newServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

// lookTime is how often announce looks whether the filters can say "no".
const lookTime = time.Second

// announce logs when the filters can say "no", and when they cannot any more.
func announce(ctx context.Context, g *guard.Guard) {
	for {
		began := time.Now()
		err := g.Filters.Ready(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil { // for good, such as a set that was dropped
			g.Logger.Error("the filters cannot tell any more; start the service anew", "error", err)
			return
		}
		g.Logger.Info("the filters can tell", "after", time.Since(began).Round(time.Millisecond))
		if err := untilLost(ctx, g); err != nil {
			g.Logger.Warn("the filters cannot tell until they are loaded again", "error", err)
		}
	}
}

// untilLost waits until the filters cannot say "no" and returns why; nil when ctx ends.
func untilLost(ctx context.Context, g *guard.Guard) error {
	tick := time.NewTicker(lookTime)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		looking, cancel := context.WithTimeout(ctx, lookTime)
		err := g.Filters.Ready(looking)
		cancel()
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// shutdown ends a server when its requests have been answered.
func shutdown(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return fmt.Errorf("wait for requests to end: %w", err)
	}
	return nil
}

// handler is the service with what operators look at.
func handler(g *guard.Guard, f flags) *http.ServeMux {
	registry := prometheus.NewRegistry()
	registry.MustRegister(g.Counters.Collector(), stats.Sets(g.Filters.Metrics), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("/", api.New(g, f.Timeout))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(g.Counters.Snapshot())
	})
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTime)
		defer cancel()
		if err := g.Ready(ctx); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	return mux
}
