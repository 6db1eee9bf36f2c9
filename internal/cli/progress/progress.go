// Package progress shows a waiting user what is going on: one bar per phase on a
// terminal, one line per finished phase elsewhere. It writes to standard error only, so
// that standard output stays the result.
package progress

import (
	"fmt"
	"io"
	"time"
)

// A Reporter shows one phase at a time. It is used by one goroutine.
type Reporter struct {
	w    io.Writer
	bar  bool
	last *bar // nil: none was drawn
}

// New returns a reporter that writes to w.
func New(w io.Writer, mode string) *Reporter {
	if mode == "none" {
		w = io.Discard
	}
	return &Reporter{w: w, bar: mode == "auto" && IsTerminal(w)}
}

// A Phase is a piece of work of known size.
type Phase struct {
	r     *Reporter
	name  string
	unit  string
	total int
	start time.Time
	bar   *bar
}

// Start begins a phase of total units, such as keys; 0 means the size is not
// known.
func (r *Reporter) Start(name string, total int, unit string) *Phase {
	p := &Phase{r: r, name: name, unit: unit, total: total, start: time.Now()}
	if r.bar {
		r.Stop()
		p.bar = newBar(r.w, name, total, unit)
		r.last = p.bar
	}
	return p
}

// Stop removes the bar of a phase that an error has ended. It writes nothing otherwise.
func (r *Reporter) Stop() {
	if r.last != nil {
		r.last.clear()
	}
}

// Add says that n more units are done.
func (p *Phase) Add(n int) {
	if p.bar != nil {
		p.bar.add(n)
	}
}

// Done ends the phase: the bar goes, or a line says how long it took.
func (p *Phase) Done() {
	if p.bar != nil {
		p.bar.clear()
		return
	}
	took := time.Since(p.start)
	line := fmt.Sprintf("%-32s %6.1f s", p.name, took.Seconds())
	if p.total > 0 && took > 0 {
		line += fmt.Sprintf("  %9.0f %s/s", float64(p.total)/took.Seconds(), p.unit)
	}
	_, _ = fmt.Fprintln(p.r.w, line)
}

// Line writes a line between phases.
func (r *Reporter) Line(format string, args ...any) {
	_, _ = fmt.Fprintf(r.w, format+"\n", args...)
}
