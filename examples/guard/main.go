// Command guard is a user service with filters in front of its cache and its database. README.md says what it does;
// docs/guard.md of the project says how such filters are chosen, sized and kept.
//
// Exit statuses: 0 success, 1 failure, 2 usage.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9/logging"

	"github.com/siftkv/siftkv/examples/guard/internal/guard"
	"github.com/siftkv/siftkv/examples/guard/internal/load"
	"github.com/siftkv/siftkv/examples/guard/internal/page"
)

func main() {
	logging.Disable() // of go-redis, which would repeat for each connection what the service says once
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program. It returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var f flags
	answered := false
	parser := kong.Must(&f, kong.Name("guard"), kong.Writers(stdout, stderr), kong.Exit(func(int) { answered = true }),
		kong.Description("A user service with filters in front of its cache and its database."))
	_, err := parser.Parse(args)
	switch {
	case answered: // --help
		return 0
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "guard: %v; see guard --help\n", err)
		return 2
	}
	options := &slog.HandlerOptions{}
	if f.Verbose {
		options.Level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(stderr, options))
	if err := serve(ctx, f, log); err != nil {
		log.Error("the service ends", "error", err)
		return 1
	}
	return 0
}

const (
	shutdownTime = 10 * time.Second // for requests to end after the service was asked to
	readyTime    = time.Second      // for a check of readiness
)

// newGuard returns the service that the flags describe.
func newGuard(p *parts, f flags) *guard.Guard {
	return guard.New(p.Parts, guard.Config{
		FailClosed: f.Fail == "closed", Conns: f.DBConns, Queue: f.DBQueue,
		Timeout: f.Timeout, FilterTimeout: f.RedisTimeout,
	})
}

// serve runs the service until the context ends.
func serve(ctx context.Context, f flags, log *slog.Logger) (err error) {
	p, err := openParts(ctx, f, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	g := newGuard(p, f)
	listener, err := net.Listen("tcp", f.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w; name another address by --listen", err)
	}
	l := &load.Load{Base: "http://" + listener.Addr().String(), Users: f.Users, Rate: f.Visitors}
	mux := handler(g, f)
	if f.Page {
		p := &page.Page{Layers: g.Counters.Layers, Load: l, Filter: &g.Switch, Promise: f.Rate, Every: time.Second / 2}
		p.Register(mux)
		showing, end := context.WithCancel(ctx)
		var shown sync.WaitGroup
		shown.Go(func() { p.Run(showing) })
		defer shown.Wait()
		defer end()
	}
	server := &http.Server{ // no slow client holds it up
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	log.Info("serving", "url", l.Base)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	go func() {
		if g.Filters.Ready(ctx) == nil {
			log.Info("the filters can tell")
		}
	}()
	select {
	case err = <-served:
		err = fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	log.Info("ending")
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	return errors.Join(err, server.Shutdown(ending))
}

// handler is the service with what operators look at.
func handler(g *guard.Guard, f flags) *http.ServeMux {
	registry := prometheus.NewRegistry()
	process := collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})
	registry.MustRegister(collectors.NewGoCollector(), process)
	g.Counters.Register(registry, g.Filters.Metrics)
	mux := http.NewServeMux()
	mux.Handle("/", g.Handler(f.Timeout))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
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
