package job

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/vfs"
)

// A RateLimiter is a token bucket for what compactions write. Tokens are bytes; there are never more than those of
// burst. A writer that takes more than there are leaves a debt, and one that may wait, waits until the debt is paid. A
// debt for which nothing waited is forgotten, except for maxDebt: it would hold compactions up when they have fallen
// behind.
type RateLimiter struct {
	Rate    int64         // bytes per second; 0: no limit
	Pressed func() bool   // compactions must not be held back
	Waited  atomic.Uint64 // nanoseconds

	mu     sync.Mutex
	tokens float64 // bytes; negative: debt
	last   time.Time
}

// The times of the bucket.
const (
	burst     = 100 * time.Millisecond // what may be saved up
	pacedStep = 10 * time.Millisecond  // between two checks of what ends a wait
	maxDebt   = time.Second
	minPace   = 2 * time.Millisecond // shorter waits are saved up: timers are not finer
)

// spend takes bytes, and returns how long it takes until no debt is left.
func (l *RateLimiter) spend(now time.Time, bytes int64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last.IsZero() {
		l.last = now
	}
	rate := float64(l.Rate)
	l.tokens += now.Sub(l.last).Seconds() * rate
	l.tokens = max(min(l.tokens, burst.Seconds()*rate), -maxDebt.Seconds()*rate)
	l.last = now
	l.tokens -= float64(bytes)
	return time.Duration(-l.tokens / rate * float64(time.Second))
}

// limit returns the file of a new table with its writes counted, and held back unless it is urgent. After stop has
// returned an error, or if it is nil, nothing waits any more.
func (l *RateLimiter) limit(f vfs.WriteFile, urgent bool, stop func() error) vfs.WriteFile {
	if l.Rate == 0 {
		return f
	}
	return &limitedFile{WriteFile: f, limiter: l, urgent: urgent || stop == nil, stop: stop}
}

// A limitedFile is the file of a table that is written under a rate.
type limitedFile struct {
	vfs.WriteFile
	limiter *RateLimiter
	urgent  bool // takes its share without waiting: a flush, or what keeps level 0 short
	stop    func() error
}

func (f *limitedFile) Write(b []byte) (int, error) {
	n, err := f.WriteFile.Write(b)
	l := f.limiter
	if wait := l.spend(time.Now(), int64(n)); !f.urgent && wait >= minPace {
		start := time.Now()
		for left := wait; left > 0 && !l.Pressed() && f.stop() == nil; left = wait - time.Since(start) {
			time.Sleep(min(left, pacedStep))
		}
		l.Waited.Add(uint64(time.Since(start)))
	}
	return n, err
}
