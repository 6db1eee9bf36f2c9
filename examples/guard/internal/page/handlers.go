package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/siftkv/siftkv/examples/guard/internal/load"
)

// A picture is what the page shows.
type picture struct {
	Running  bool          `json:"running"`
	Scenario load.Scenario `json:"scenario"` // of the last load; empty: there was none
	Seconds  float64       `json:"seconds"`  // it runs, or ran
	Limit    float64       `json:"limit"`    // seconds after which a load ends by itself
	Failure  string        `json:"failure"`  // why the last load could not be played
	Filter   bool          `json:"filter"`   // it is on
	Switch   bool          `json:"switch"`   // it can be turned off
	Promise  float64       `json:"promise"`
	Every    float64       `json:"every"` // seconds between samples
	Keep     int           `json:"keep"`
	Kinds    []kind        `json:"kinds"`
	Late     uint64        `json:"late"`
	Repeated uint64        `json:"repeated"`
	Mistakes []string      `json:"mistakes"`
	Last     uint64        `json:"last"` // number of the last sample
	Samples  []moment      `json:"samples"`
}

// A kind is a row of the table of requests.
type kind struct {
	Name      string         `json:"name"`
	Requests  uint64         `json:"requests"`
	PerSecond float64        `json:"per_second"`
	P50       int64          `json:"p50"` // microseconds
	P99       int64          `json:"p99"`
	Max       int64          `json:"max"`
	Failed    uint64         `json:"failed"`
	Wrong     uint64         `json:"wrong"`
	Status    map[int]uint64 `json:"status"`
}

// live sends the picture.
func (p *Page) live(w http.ResponseWriter, r *http.Request) {
	number := uint64(0)
	if text := r.URL.Query().Get("after"); text != "" {
		var err error
		if number, err = strconv.ParseUint(text, 10, 64); err != nil {
			http.Error(w, fmt.Sprintf("after=%.40q is not the number of a sample", text), http.StatusBadRequest)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(p.picture(number)) // the browser may be gone: there is nobody to tell
}

// picture returns what there is to show after a sample.
func (p *Page) picture(number uint64) picture {
	report := p.meter.Report()
	c := picture{
		Scenario: report.Scenario, Seconds: report.Seconds, Limit: p.config.Load.For.Seconds(),
		Filter: p.filter(), Switch: p.config.Filter != nil, Promise: p.config.Promise,
		Every: p.config.Every.Seconds(), Keep: keep,
		Kinds: []kind{}, Late: report.Late, Repeated: report.Repeated, Mistakes: append([]string{}, report.Mistakes...),
	}
	c.Running, c.Failure = p.player.state()
	c.Samples, c.Last = p.after(number)
	for _, name := range load.Kinds {
		if f, ok := report.Kinds[name]; ok {
			c.Kinds = append(c.Kinds, kind{
				Name: string(name), Requests: f.Requests, PerSecond: float64(f.Requests) / max(report.Seconds, 1e-9),
				P50: f.Latency.P50, P99: f.Latency.P99, Max: f.Latency.Max,
				Failed: f.Failed, Wrong: f.Wrong, Status: f.Status,
			})
		}
	}
	return c
}

// run begins a scenario.
func (p *Page) run(w http.ResponseWriter, r *http.Request) {
	scenario := load.Scenario(r.URL.Query().Get("scenario"))
	if !slices.Contains(load.Scenarios, scenario) {
		text := fmt.Sprintf("scenario=%.40q is none; there are %v", scenario, load.Scenarios)
		http.Error(w, text, http.StatusBadRequest)
		return
	}
	switch err := p.player.play(r.Context(), scenario); {
	case errors.Is(err, errClosed):
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// stop ends the load that is played.
func (p *Page) stop(w http.ResponseWriter, _ *http.Request) {
	p.player.stop()
	w.WriteHeader(http.StatusNoContent)
}

// turn turns the filter off or on.
func (p *Page) turn(w http.ResponseWriter, r *http.Request) {
	on, err := strconv.ParseBool(r.URL.Query().Get("on"))
	switch {
	case err != nil:
		http.Error(w, "on must be true or false", http.StatusBadRequest)
	case p.config.Filter == nil:
		http.Error(w, "the filter of this service cannot be turned off", http.StatusConflict)
	default:
		p.config.Filter.Set(on)
		w.WriteHeader(http.StatusNoContent)
	}
}
