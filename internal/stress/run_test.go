package stress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Config says what a run does. It ends after Minutes, after Rounds, or with a finding,
// whichever comes first.
type Config struct {
	Seed     uint64 // of the first life; the next one has the next seed
	Minutes  float64
	Rounds   int
	Workers  int    // goroutines that write; 4 by default
	Features string // see Features; all by default
	Place    string // of the stores: "disk", "objects", or both, a life in three in an object store: "all", the default
	// KeepGoing goes on after a finding, with a new life.
	KeepGoing bool
	// Patience is how long a store may stand still while somebody waits for it: 30 seconds
	// by default.
	Patience time.Duration
	// Log gets a line for each round if Verbose is set, and every finding. It may be nil.
	Log     io.Writer
	Verbose bool
}

// Run runs until the configuration says that it is enough. The error is that of the
// configuration, or of the context; findings are in the report.
func Run(ctx context.Context, c Config) (*Report, error) {
	want, err := parseFeatures(c.Features)
	if err != nil {
		return nil, err
	}
	if c.Workers == 0 {
		c.Workers = 4
	}
	if c.Workers < 1 || c.Workers > 64 {
		return nil, fmt.Errorf("stress: %d workers: want 1 to 64", c.Workers)
	}
	if !slices.Contains([]string{"", "all", "disk", "objects"}, c.Place) {
		return nil, fmt.Errorf("stress: there is no place %q: want all, disk or objects", c.Place)
	}
	if c.Minutes <= 0 && c.Rounds <= 0 {
		return nil, errors.New("stress: say when to end: after some minutes, or some rounds")
	}
	if c.Patience == 0 {
		c.Patience = 30 * time.Second
	}
	if c.Log == nil {
		c.Log = io.Discard
	}
	s := &run{Config: c, ctx: ctx, want: want, start: time.Now(), report: &Report{counts: newCounts()}}
	for seed := c.Seed; !s.enough(); seed++ {
		if s.inObjects(seed) {
			if err := s.liveInObjects(seed); err != nil {
				return s.report, err
			}
			continue
		}
		if err := s.live(newLife(seed, c.Workers, s.report.counts, want, c.Patience)); err != nil {
			return s.report, err
		}
	}
	s.report.Elapsed = time.Since(s.start)
	return s.report, ctx.Err()
}

// A run is a series of lives.
type run struct {
	Config
	ctx    context.Context
	want   featureSet
	start  time.Time
	report *Report
}

func (s *run) enough() bool {
	return s.ctx.Err() != nil ||
		s.Minutes > 0 && time.Since(s.start) >= time.Duration(s.Minutes*float64(time.Minute)) ||
		s.Rounds > 0 && s.report.counts.rounds >= s.Rounds ||
		len(s.report.Findings) > 0 && !s.KeepGoing
}

// live goes through a life.
func (s *run) live(l *life) error {
	c := s.report.counts
	c.lives++
	defer func() { c.addDisk(l.disk.Counts()) }()
	defer l.copied.remove()
	defer l.end()
	for n := 0; n < roundsOfLife && !s.enough(); n++ {
		r := l.draw(n)
		s.log(fmt.Sprintf("life %d, %v", l.seed, r))
		f := r.run(s.ctx)
		c.add(r)
		if f == nil {
			continue
		}
		return s.found(f, l.seed, n, r.String())
	}
	return nil
}

// log prints a line for who wants to know all.
func (s *run) log(line string) {
	if s.Verbose {
		_, _ = fmt.Fprintln(s.Log, line)
	}
}

// found notes what was found in a life.
func (s *run) found(f *Finding, seed uint64, round int, what string) error {
	found := Found{Finding: *f, Seed: seed, Round: what, After: time.Since(s.start),
		Replay: fmt.Sprintf("%s --seed %d --rounds %d --workers %d --features=%s --place=%s", command, seed, round+1,
			s.Workers, orAll(s.Features), orAll(s.Place))}
	s.report.Findings = append(s.report.Findings, found)
	_, err := fmt.Fprintln(s.Log, found.String())
	return err
}

// inObjects reports whether the life of a seed is one in an object store.
func (s *run) inObjects(seed uint64) bool {
	return s.Place == "objects" || s.Place != "disk" && seed%3 == 2
}

// command runs TestStress; flags follow.
const command = "go test ./internal/stress -run '^TestStress$' -count 1 -timeout 0 -v -args"

func orAll(features string) string {
	if features == "" {
		return "all"
	}
	return features
}
