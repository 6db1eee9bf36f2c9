// Package page is a page in the browser that shows what the service and its visitors
// see, live, and that starts and stops loads and turns the filter off and on.
//
//	GET  /              the page
//	GET  /page/{file}   its parts
//	GET  /live?after=N  the state, and the samples after sample N, as JSON
//	POST /run?scenario=attack|cold|normal
//	POST /stop
//	POST /filter?on=true|false
//
// The page loads nothing from elsewhere. What changes something is refused to pages of
// other origins.
package page

import (
	"cmp"
	"context"
	"embed"
	"io/fs"
	"net/http"
	"sync"
	"time"

	"github.com/siftkv/siftkv/examples/guard/internal/load"
	"github.com/siftkv/siftkv/examples/guard/internal/meter"
	"github.com/siftkv/siftkv/examples/guard/internal/stats"
)

//go:embed files
var embedded embed.FS

// files are the page's parts.
var files, _ = fs.Sub(embedded, "files") // it has that folder

// A Switch turns the filter off and on. It may be used from many goroutines.
type Switch interface {
	On() bool
	Set(on bool)
}

// Config says what a page shows and plays.
type Config struct {
	Counters func() stats.Snapshot // of the service
	// Load is what is played. Scenario and Seed are the page's; For is the longest time of a load,
	// default one minute.
	Load   load.Config
	Filter Switch // nil: the filter cannot be turned off
	// Promise is the share of false positives that the filter promises, such as 0.01: a line in
	// the chart. 0: there is none.
	Promise float64
	Every   time.Duration // between samples; default 0.5 s
}

// keep is how many samples a page that is opened shows at once.
const keep = 120

// A Page is a page, or many windows of it. It may be used from many goroutines.
type Page struct {
	config Config
	meter  *meter.Meter
	player player

	mu      sync.Mutex
	moments []moment // the last ones, oldest first
}

// A moment is a sample, and how things were.
type moment struct {
	meter.Sample
	Filter bool `json:"filter"`
}

// New returns a page. Run brings it to life.
func New(config Config) *Page {
	config.Every = cmp.Or(config.Every, 500*time.Millisecond)
	config.Load.For = cmp.Or(config.Load.For, time.Minute)
	p := &Page{config: config, meter: meter.New(config.Counters)}
	p.player = player{config: config.Load, meter: p.meter}
	return p
}

// Run takes samples until the context ends. Then it stops the load that is played, and
// returns when its visitors have left.
func (p *Page) Run(ctx context.Context) {
	tick := time.NewTicker(p.config.Every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.take()
		case <-ctx.Done():
			p.player.close()
			return
		}
	}
}

// take takes a sample.
func (p *Page) take() {
	m := moment{Sample: p.meter.Take(), Filter: p.filter()}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moments = append(p.moments, m)
	p.moments = p.moments[max(0, len(p.moments)-keep):]
}

// after returns the moments after a number, oldest first, and the number of the last one.
// A number that is still to come is one of a process before this one: all are returned.
func (p *Page) after(number uint64) (fresh []moment, last uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.moments) == 0 {
		return []moment{}, 0
	}
	last = p.moments[len(p.moments)-1].Number
	if number > last {
		number = 0
	}
	n := min(last-number, uint64(len(p.moments)))
	return append([]moment{}, p.moments[uint64(len(p.moments))-n:]...), last
}

// filter reports whether the filter is on.
func (p *Page) filter() bool { return p.config.Filter == nil || p.config.Filter.On() }

// Register adds the page to a service's routes.
func (p *Page) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { serveFile(w, r, "index.html") })
	mux.HandleFunc("GET /page/{file}", func(w http.ResponseWriter, r *http.Request) {
		serveFile(w, r, r.PathValue("file"))
	})
	mux.HandleFunc("GET /live", p.live)
	origin := http.NewCrossOriginProtection()
	mux.Handle("POST /run", origin.Handler(http.HandlerFunc(p.run)))
	mux.Handle("POST /stop", origin.Handler(http.HandlerFunc(p.stop)))
	mux.Handle("POST /filter", origin.Handler(http.HandlerFunc(p.turn)))
}

// policy lets the page use nothing but its own parts, and be in no frame of another page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// serveFile sends a part of the page.
func serveFile(w http.ResponseWriter, r *http.Request, name string) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache")
	http.ServeFileFS(w, r, files, name)
}
