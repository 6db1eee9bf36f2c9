// Package page shows in a browser, live, what the filters keep from the database. It starts and stops an attack, and
// turns the filters off and on.
//
//	GET  /              the page
//	GET  /live          the state and the last samples, as JSON
//	POST /attack        begins an attack
//	POST /stop          ends it
//	POST /filter?on=true|false
//
// The page loads nothing from elsewhere. Requests that change something are refused to pages of other origins.
package page

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/siftkv/siftkv/examples/guard/internal/guard"
	"github.com/siftkv/siftkv/examples/guard/internal/load"
)

//go:embed files
var embedded embed.FS

var files, _ = fs.Sub(embedded, "files") // the page's parts

const keep = 120 // samples that a page shows

// Page is a page. Make one with its fields, and have Run running. It is for any number of goroutines.
type Page struct {
	Layers  func() guard.Layers // of the service
	Load    *load.Load
	Filter  *guard.Switch
	Promise float64       // the share of false positives that the filters promise, such as 0.01
	Every   time.Duration // between samples
	Length  time.Duration // of an attack; 0: a minute

	mu       sync.Mutex
	samples  []sample        // the last ones, oldest first
	attacks  context.Context // of all attacks; nil before Run
	running  bool            // an attack is
	begun    time.Time       // of the last attack
	cancel   context.CancelFunc
	visitors sync.WaitGroup
}

// A sample is the state at a time. Its numbers count from the start of the process.
type sample struct {
	Seconds float64 `json:"seconds"` // since the sample before
	On      bool    `json:"on"`      // the filters are
	P50     int64   `json:"p50"`     // how long the load's users waited since then, in microseconds; 0: no user waited
	P99     int64   `json:"p99"`
	guard.Layers
	load.Figures
}

type state struct {
	Running bool     `json:"running"`
	Seconds float64  `json:"seconds"` // since the last attack began; 0: there was none
	Limit   float64  `json:"limit"`   // seconds after which it ends by itself
	On      bool     `json:"on"`      // the filters are
	Promise float64  `json:"promise"`
	Every   float64  `json:"every"` // seconds between samples
	Keep    int      `json:"keep"`
	Samples []sample `json:"samples"`
}

func (p *Page) length() time.Duration { return cmp.Or(p.Length, time.Minute) }

// Run takes samples until the context ends. Then it ends the attack, and returns when its visitors have left.
func (p *Page) Run(ctx context.Context) {
	p.mu.Lock()
	p.attacks = ctx
	p.mu.Unlock()
	tick := time.NewTicker(p.Every)
	defer tick.Stop()
	for before := time.Now(); ; {
		select {
		case <-tick.C:
			before = p.take(before)
		case <-ctx.Done():
			p.mu.Lock() // no attack begins after this
			p.mu.Unlock()
			p.visitors.Wait()
			return
		}
	}
}

// take takes a sample and returns when it began. A busy machine may hold it up between two counters. So a sample
// reaches from the beginning of the one before to its own end, and no rate that is made of it is too high.
func (p *Page) take(before time.Time) (begun time.Time) {
	begun = time.Now()
	p50, p99 := p.Load.Waits()
	s := sample{
		On: p.Filter.On(), P50: p50.Microseconds(), P99: p99.Microseconds(),
		Figures: p.Load.Figures(), Layers: p.Layers(),
	}
	s.Seconds = time.Since(before).Seconds()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.samples = append(p.samples, s)
	p.samples = p.samples[max(0, len(p.samples)-keep):]
	return begun
}

func (p *Page) state() state {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := state{
		Running: p.running, Limit: p.length().Seconds(), On: p.Filter.On(), Promise: p.Promise,
		Every: p.Every.Seconds(), Keep: keep, Samples: append([]sample{}, p.samples...),
	}
	if p.cancel != nil {
		s.Seconds = time.Since(p.begun).Seconds()
	}
	return s
}

// attack begins an attack, unless one is running or the service ends.
func (p *Page) attack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running || p.attacks == nil || p.attacks.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(p.attacks)
	p.begun, p.running, p.cancel = time.Now(), true, cancel
	p.visitors.Go(func() {
		defer cancel()
		p.Load.Run(ctx, p.length())
		p.mu.Lock()
		defer p.mu.Unlock()
		p.running = false
	})
}

// stop ends the attack. Its visitors may still be leaving.
func (p *Page) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running {
		p.cancel()
	}
}

// Register adds the page to a service's routes.
func (p *Page) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { serveFile(w, r, "index.html") })
	mux.HandleFunc("GET /page/{file}", func(w http.ResponseWriter, r *http.Request) {
		serveFile(w, r, r.PathValue("file"))
	})
	mux.HandleFunc("GET /live", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(p.state()) // fails if the browser is gone
	})
	origin := http.NewCrossOriginProtection()
	change := func(pattern string, f func()) {
		mux.Handle(pattern, origin.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			f()
			w.WriteHeader(http.StatusNoContent)
		})))
	}
	change("POST /attack", p.attack)
	change("POST /stop", p.stop)
	mux.Handle("POST /filter", origin.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		on, err := strconv.ParseBool(r.URL.Query().Get("on"))
		if err != nil {
			http.Error(w, "on must be true or false", http.StatusBadRequest)
			return
		}
		p.Filter.Set(on)
		w.WriteHeader(http.StatusNoContent)
	})))
}

// policy lets the page use only its own parts, and keeps it out of frames of other pages.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func serveFile(w http.ResponseWriter, r *http.Request, name string) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache")
	http.ServeFileFS(w, r, files, name)
}
