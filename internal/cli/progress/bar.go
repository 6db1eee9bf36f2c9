package progress

import (
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	barWidth    = 24
	barInterval = 100 * time.Millisecond
	clearLine   = "\r\x1b[K"
)

// A bar is a line of a terminal that is drawn over and over. An error of the terminal must not stop the work.
type bar struct {
	w           io.Writer
	name, unit  string
	total, done int // total is 0 if the size is not known
	start, next time.Time
}

func newBar(w io.Writer, name string, total int, unit string) *bar {
	b := &bar{w: w, name: name, unit: unit, total: total, start: time.Now()}
	b.draw(b.start)
	return b
}

func (b *bar) add(n int) {
	b.done += n
	if now := time.Now(); !now.Before(b.next) {
		b.draw(now)
	}
}

func (b *bar) draw(now time.Time) {
	b.next = now.Add(barInterval)
	_, _ = io.WriteString(b.w, clearLine+b.line(now.Sub(b.start)))
}

// clear removes the line.
func (b *bar) clear() { _, _ = io.WriteString(b.w, clearLine) }

// line returns what is drawn after a time: what is done, how fast, and how long the rest takes at that speed.
func (b *bar) line(took time.Duration) string {
	if b.total == 0 {
		return fmt.Sprintf("%-32s %.0f s", b.name, took.Seconds())
	}
	share := min(float64(b.done)/float64(b.total), 1)
	full := int(share * barWidth)
	line := fmt.Sprintf("%-32s %3.0f%% %s%s", b.name, 100*share, strings.Repeat("█", full),
		strings.Repeat("░", barWidth-full))
	if b.done == 0 || took <= 0 {
		return line
	}
	rest := time.Duration(float64(took) * (1 - share) / share)
	return fmt.Sprintf("%s %.0f %s/s, %s left", line, float64(b.done)/took.Seconds(), b.unit, rest.Round(time.Second))
}
