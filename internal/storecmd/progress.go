package storecmd

import (
	"fmt"
	"time"

	"github.com/siftkv/siftkv/internal/cli/progress"
	"github.com/siftkv/siftkv/internal/keytext"
)

// A display shows the phases of a long job on a terminal. It is used by one goroutine.
type display struct {
	reporter *progress.Reporter // nil: nothing is shown
	phase    *progress.Phase
	current  string // its name
	shown    int
}

func (p *program) display() display {
	if p.Quiet || !progress.IsTerminal(p.stderr) {
		return display{}
	}
	return display{reporter: progress.New(p.stderr, "auto")}
}

// note says on standard error what a command waits for.
func (p *program) note(format string, args ...any) {
	if !p.Quiet && !p.JSON { // with --json, each line on standard error is an error
		_, _ = fmt.Fprintf(p.stderr, "siftkv: %s\n", keytext.Escaped(fmt.Sprintf(format, args...)))
	}
}

func (d *display) show(name string, done, total int, unit string) {
	if d.reporter == nil {
		return
	}
	if d.phase == nil || name != d.current {
		d.end()
		d.phase, d.current, d.shown = d.reporter.Start(name, total, unit), name, 0
	}
	d.phase.Add(done - d.shown)
	d.shown = done
}

func (d *display) end() {
	if d.phase != nil {
		d.phase.Done()
		d.phase = nil
	}
}

// progress returns a function that shows the phases of a job on files, and one that ends
// the display.
func (p *program) progress() (step func(phase string, done, total int), end func()) {
	d := p.display()
	return func(phase string, done, total int) { d.show(phase, done, total, "files") }, d.end
}

// A meter counts bytes and shows them, after the first second.
type meter struct {
	display
	bytes int64
	name  string
	total int64 // 0: not known
	start time.Time
}

func (p *program) meter(name string, total int64) *meter {
	return &meter{display: p.display(), name: name, total: total, start: time.Now()}
}

// Write counts what was written, and never fails.
func (m *meter) Write(b []byte) (int, error) {
	m.bytes += int64(len(b))
	if m.reporter != nil && time.Since(m.start) > time.Second {
		m.show(m.name, int(m.bytes>>20), int(m.total>>20), "MiB")
	}
	return len(b), nil
}
