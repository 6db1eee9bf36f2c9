package compaction

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/version"
)

// A Load is what a store has to do, by which its writers are slowed down.
type Load struct {
	*Input

	// Pending is the bytes in memtables that wait to be flushed, and in the blob files that commits wrote for them.
	// They count as garbage of blob files: they come in any case.
	Pending int64

	// Busy reports whether a job or a flush runs, or is about to. If none does, to wait does not free space: tables
	// that are left alone hide it.
	Busy bool
}

// Slows reports whether writes are slowed down.
func (l *Load) Slows() bool {
	return Level0Over(l.Version, l.L0SlowdownThreshold) || l.slowsForBlobs() > 0 || l.Disk.Full
}

// Pressure returns how much writers must be slowed down for level 0 and for blob files: not at all at 0, most at 1.
// After a job has failed, with the given cause, they are not slowed down for blob files.
func (l *Load) Pressure(failed error) float64 {
	pressure := l.slowsForBlobs()
	if Level0Over(l.Version, l.L0SlowdownThreshold) {
		over := Level0Backlog(l.Version) - l.L0SlowdownThreshold
		return max(pressure, min(float64(over+1)/float64(l.L0StopThreshold-l.L0SlowdownThreshold), 1))
	}
	if failed != nil {
		return 0
	}
	return pressure
}

// BlobPressure is BlobSpace.Pressure of the store.
func (l *Load) BlobPressure() float64 {
	if l.Version.BlobTotals().Files == 0 {
		return 0
	}
	s := l.BlobSpace()
	return s.Pressure(float64(l.Pending), float64(l.MemtableSize))
}

func (l *Load) slowsForBlobs() float64 {
	if !l.Busy {
		return 0
	}
	return min(l.BlobPressure(), 1)
}

// ScarceSpace reports whether so little was free that it matters how much it is by now.
func (in *Input) ScarceSpace() bool { return in.Disk.Free < 2*in.SpaceWanted(in.Version) }

// Level0Blocked returns why no job shortens level 0, which is full: damaged files of any level, since those that
// overlap level 0 keep it from going down.
func Level0Blocked(v *version.Version, path func(table uint64) string) error {
	var damaged []string
	v.All(func(_ int, t *version.Table) {
		if t.Quarantined {
			damaged = append(damaged, path(t.Num))
		}
	})
	if len(damaged) == 0 {
		return errors.New("level 0 is full, and no compaction can shorten it")
	}
	return fmt.Errorf("%w: level 0 is full, and its files cannot be merged because of damaged ones: %s",
		base.ErrCorruption, strings.Join(damaged, ", "))
}

// A Throttle says how long writes sleep under pressure: so long that they come to about fastRate bytes per second at
// the least pressure, and to slowRate at 1. In between, the rate falls exponentially, so that a writer sees latency
// grow and never a wall.
type Throttle struct{ debt time.Duration } // how long writes should have slept

const (
	fastRate = 64 << 20
	slowRate = 1 << 20
	minSleep = time.Millisecond // shorter sleeps are saved up: timers are not finer
)

// Sleep returns how long a write of a number of bytes sleeps at most, at this pressure.
func (t *Throttle) Sleep(pressure float64, bytes int) time.Duration {
	if pressure == 0 {
		t.debt = 0
		return 0
	}
	rate := fastRate * math.Pow(float64(slowRate)/fastRate, pressure)
	t.debt += time.Duration(float64(bytes) / rate * float64(time.Second))
	if t.debt < minSleep {
		return 0
	}
	sleep := min(t.debt, time.Second)
	t.debt = 0
	return sleep
}
