package kv

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/vfs"
)

// minCompactionRate is the least rate that may be asked for, in bytes per second: a
// lower one would not keep up with any writer.
const minCompactionRate = 64 << 10

// A rateLimiter is a token bucket for what compactions write. Tokens are bytes; there
// are never more than those of burst. Whoever takes more than there are leaves a debt,
// and who can wait, waits until it is paid off. A debt that nobody waited for is forgotten
// but for maxDebt: it would hold compactions up when they have fallen behind. The zero
// value is ready for use.
type rateLimiter struct {
	waited atomic.Uint64 // nanoseconds

	mu     sync.Mutex
	tokens float64 // bytes; negative: debt
	last   time.Time
}

// The times of the bucket.
const (
	burst     = 100 * time.Millisecond // what may be saved up
	pacedStep = 10 * time.Millisecond  // between two looks at what ends a wait
	maxDebt   = time.Second
	minPace   = 2 * time.Millisecond // shorter waits are saved up: timers are not finer
)

// spend takes bytes at a rate per second, and returns how long it takes until no debt
// is left.
func (l *rateLimiter) spend(now time.Time, bytes, rate int64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last.IsZero() {
		l.last = now
	}
	l.tokens += now.Sub(l.last).Seconds() * float64(rate)
	l.tokens = max(min(l.tokens, burst.Seconds()*float64(rate)), -maxDebt.Seconds()*float64(rate))
	l.last = now
	l.tokens -= float64(bytes)
	return time.Duration(-l.tokens / float64(rate) * float64(time.Second))
}

// limit returns the file of a new table with its writes counted, and held back unless it
// is urgent. Once stop returns an error, or if it is nil, nobody waits any more.
func (l *rateLimiter) limit(d *DB, f vfs.WriteFile, urgent bool, stop func() error) vfs.WriteFile {
	if d.opts.CompactionRate == 0 {
		return f
	}
	return &limitedFile{WriteFile: f, d: d, urgent: urgent || stop == nil, stop: stop}
}

// A limitedFile is the file of a table that is written under a rate.
type limitedFile struct {
	vfs.WriteFile
	d      *DB
	urgent bool // takes its share without waiting: a flush, or what keeps level 0 short
	stop   func() error
}

func (f *limitedFile) Write(b []byte) (int, error) {
	n, err := f.WriteFile.Write(b)
	l := &f.d.compactionRate
	if wait := l.spend(time.Now(), int64(n), f.d.opts.CompactionRate); !f.urgent && wait >= minPace {
		start := time.Now()
		for left := wait; left > 0 && !f.d.pressed() && f.stop() == nil; left = wait - time.Since(start) {
			time.Sleep(min(left, pacedStep))
		}
		l.waited.Add(uint64(time.Since(start)))
	}
	return n, err
}

// pressed reports whether compactions must not be held back: level 0 or the blob files slow
// writers down, or the store closes.
func (d *DB) pressed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closing || d.underPressure()
}
