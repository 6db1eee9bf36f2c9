package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	barWidth    = 24
	barInterval = 100 * time.Millisecond
	clearLine   = "\r\x1b[K"
)

// A bar is a line of a terminal that is drawn over and over. An error of the terminal must not stop the work.
type bar struct {
	w          io.Writer
	name, unit string
	total      int // 0 if the size is not known
	start      time.Time
	stop       func() // ends the drawing in intervals of a bar whose size is not known

	mu      sync.Mutex
	done    int
	next    time.Time
	cleared bool
}

func newBar(w io.Writer, name string, total int, unit string) *bar {
	b := &bar{w: w, name: name, unit: unit, total: total, start: time.Now(), stop: func() {}}
	b.draw(b.start)
	if total == 0 { // no call of add draws it
		b.stop = every(barInterval, func() { b.draw(time.Now()) })
	}
	return b
}

// every calls f in intervals, in a goroutine of its own, until what it returns is called.
func every(interval time.Duration, f func()) (stop func()) {
	ticks, end := time.NewTicker(interval), make(chan struct{})
	go func() {
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				f()
			case <-end:
				return
			}
		}
	}()
	return sync.OnceFunc(func() { close(end) })
}

func (b *bar) add(n int) {
	b.mu.Lock()
	b.done += n
	now := time.Now()
	due := !now.Before(b.next)
	b.mu.Unlock()
	if due {
		b.draw(now)
	}
}

func (b *bar) draw(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cleared {
		return
	}
	b.next = now.Add(barInterval)
	_, _ = io.WriteString(b.w, clearLine+b.line(now.Sub(b.start)))
}

func (b *bar) clear() {
	b.stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.cleared {
		b.cleared = true
		_, _ = io.WriteString(b.w, clearLine)
	}
}

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
