package s3

import (
	"sync"
	"sync/atomic"
	"time"
)

// An uplink is what a store knows of the speed of its uploads. The parts of an upload follow it: over a slow line few
// parts of small sizes are under way. So a lost part costs little, and concurrent puts, such as a log's entry, do not
// wait behind megabytes.
type uplink struct {
	sent atomic.Int64 // bytes of uploads, repeated ones counted again

	mu    sync.Mutex
	rate  float64   // bytes/s; 0: not known
	busy  int       // parts under way
	since time.Time // there was always one, or a part ended
	from  int64     // sent was then
}

const (
	laneRate = 512 << 10       // bytes/s for which another part at once is of use
	partTime = 8 * time.Second // of a part, if its size may be chosen so
)

// parts returns how many parts may be under way and how large those of the next upload are, at most those given.
func (u *uplink) parts(most int, largest int64) (lanes int, size int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.rate == 0 {
		return most, largest
	}
	lanes = int(min(float64(most), 1+u.rate/laneRate))
	size = int64(min(float64(largest), u.rate/float64(lanes)*partTime.Seconds()))
	return lanes, max(size, minPartSize)
}

// begin notes that a part begins, and end that it ended.
func (u *uplink) begin() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.busy++; u.busy == 1 {
		u.since, u.from = time.Now(), u.sent.Load()
	}
}

func (u *uplink) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.busy--
	took, sent := time.Since(u.since), u.sent.Load()-u.from
	if sent < minPartSize && took < partTime {
		return // a moment after another part ended: too little to tell a speed
	}
	seen := float64(sent) / max(took.Seconds(), 1e-3)
	if u.rate != 0 {
		seen = (u.rate + seen) / 2
	}
	u.rate = seen
	if took > partTime {
		u.since, u.from = time.Now(), u.sent.Load()
	}
}
