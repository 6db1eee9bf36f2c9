package changelog

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Learn takes over what consumers in other processes have acknowledged. The writer calls it before an edit, so that
// the edit gives up what they have.
func (l *Log) Learn() {
	for _, s := range l.away(false) {
		r, err := readRecord(l.FS, filepath.Join(l.Dir, manifest.SlotName(s.Name)))
		if err == nil { // else what is known of it holds
			l.learn(s, r)
		}
	}
	l.Report()
}

// learn is Learn of one slot, whose file was read without the lock.
func (l *Log) learn(s *slot, r record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case s.lock != nil || l.slots[s.Name] != s: // another slot may have the name, and the file was of the one before
	case r.History != s.History: // its consumer has writes that the store has not
		l.lose(s, whyDiverged)
		l.endIfUnused()
	case r.Acked > s.Acked && (l.Last == nil || r.Acked <= l.Last()): // else it is ahead of what is visible here
		s.Acked = r.Acked
		if s.why == whyOverrun && s.History == l.current().History && s.Acked >= l.current().From {
			s.why = "" // it was in time; some slot was not lost all along, or the history would be another
		}
	}
}

// away returns the slots that no consumer in this process has, if live is set those that are not lost.
func (l *Log) away(live bool) (slots []*slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.slots {
		if s.lock == nil && (s.why == "" || !live) {
			slots = append(slots, s)
		}
	}
	return slots
}

// elsewhere returns the names of the slots whose consumers are in other processes.
func (l *Log) elsewhere(live bool) (names []string) {
	for _, s := range l.away(live) {
		if isHeld(l.FS, l.Dir, s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

// Follow makes Release close a consumer of a store that another process writes. It closes one that the slot had before.
func (l *Log) Follow(c *Consumer) {
	if before, ok := l.consumers.Swap(c.Name, c); ok {
		_ = before.(*Consumer).Close() // it was only read
	}
}

// Follows returns the consumer that has a slot, or had it last; nil: there was none.
func (l *Log) Follows(name string) *Consumer {
	c, _ := l.consumers.Load(name)
	consumer, _ := c.(*Consumer)
	return consumer
}

// A State is what is known of a slot.
type State struct {
	Name   string
	Acked  uint64    // the last write that was acknowledged
	Behind uint64    // how many writes came after it, about
	Bytes  int64     // that are kept for it, without the logs that the store needs itself
	Since  time.Time // when the oldest of them was kept; zero: there is none
	Lost   string    // why it is lost; empty: it is not
	Open   bool      // it has a consumer
}

// States returns the slots of a store whose last write is last, by name.
func (l *Log) States(last base.SeqNum) (states []State) {
	l.Learn()
	elsewhere := l.elsewhere(false)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.slots)) {
		s := l.slots[name]
		state := State{Name: name, Acked: uint64(s.Acked), Lost: s.why,
			Open: s.lock != nil || slices.Contains(elsewhere, name)}
		if s.why == "" {
			state.Behind = uint64(last - min(s.Acked, last))
		}
		for _, p := range l.kept.Parts {
			if s.why != "" || p.Last <= s.Acked {
				continue
			}
			if state.Bytes += p.Bytes; state.Since.IsZero() {
				state.Since = time.Unix(int64(p.Time), 0)
			}
		}
		states = append(states, state)
	}
	return states
}

// StatesElsewhere is States for a store that another process writes, whose last write in view is last. In an object
// store, where fsys is as new as can be, it is the last that consumers can have.
func (l *Log) StatesElsewhere(fsys vfs.FS, last base.SeqNum) ([]State, error) {
	c := Consumer{FS: fsys, Dir: l.Dir}
	err := c.readManifest()
	for try := 0; try < maxRefreshTries && errors.Is(err, fs.ErrNotExist); try++ {
		err = c.readManifest()
	}
	if err = errors.Join(err, c.closeTail()); err != nil {
		return nil, err
	}
	if l.Remote {
		last = c.tables
	}
	now := Log{FS: fsys, Dir: l.Dir, Logger: l.Logger, ReadOnly: true}
	if err = now.Recover(c.kept, base.MaxSeqNum, ""); err != nil {
		return nil, err
	}
	return now.States(last), nil
}

// Release takes all slots from their consumers: the store is closed.
func (l *Log) Release() (err error) {
	l.mu.Lock()
	names := slices.Collect(maps.Keys(l.slots))
	l.mu.Unlock()
	for _, c := range l.consumers.Range {
		err = errors.Join(err, c.(*Consumer).Close())
	}
	for _, name := range names {
		l.Close(name)
	}
	return err
}

// A Marker makes the files of a store say what is durable as long as a consumer in another process has a slot: it has
// no other way to know. Without one, it looks for one at times: it reads the files of slots and their locks, and makes
// an edit if that gives something up. It stops when all slots are lost.
type Marker struct {
	Log *Log
	// Wait returns when a write is visible that was not when Mark was called last, or when ctx ends.
	Wait func(ctx context.Context)
	// Mark makes durable what is visible, and has the files say so. It returns how long the next Mark should wait, and
	// whether one is needed without another write: what is under way will make more durable.
	Mark func(ctx context.Context) (pause time.Duration, again bool, err error)

	mu      sync.Mutex
	stopped bool
	cancel  context.CancelFunc // of the goroutine; nil: there is none
	running sync.WaitGroup     // the goroutine
}

// Times of a Marker.
const (
	LookEvery   = time.Second            // how often the locks of slots are looked at
	markAgain   = 20 * time.Millisecond  // the time to the next mark when more will be durable soon
	failedPause = 100 * time.Millisecond // the time to the next attempt after an error
)

// Start has the Marker look for consumers after a time, and then as long as some slot is not lost.
func (m *Marker) Start(after time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped || m.cancel != nil || m.Log.Remote { // no other process has a slot of a store in an object store
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	m.running.Go(func() { m.run(ctx, after) })
}

// Stop ends what the Marker does. It does nothing any more, whether it was started or not.
func (m *Marker) Stop() {
	m.mu.Lock()
	if m.stopped = true; m.cancel != nil {
		m.cancel()
	}
	m.mu.Unlock()
	m.running.Wait()
}

// run looks for consumers.
func (m *Marker) run(ctx context.Context, after time.Duration) {
	for ended := false; !ended; after = LookEvery {
		pause(ctx, after)
		m.markAttended(ctx)
		m.mu.Lock()
		if ended = ctx.Err() != nil || !m.Log.Active(); ended {
			m.cancel()
			m.cancel = nil
		}
		m.mu.Unlock()
	}
}

// markAttended marks until no other process has a slot.
func (m *Marker) markAttended(ctx context.Context) {
	again, look := true, time.Time{}
	for ctx.Err() == nil {
		if now := time.Now(); !now.Before(look) {
			look = now.Add(LookEvery)
			if !m.Log.attended() {
				return
			}
		}
		until := look
		if again {
			until = time.Now().Add(markAgain)
		}
		wait, cancel := context.WithDeadline(ctx, until)
		m.Wait(wait)
		cancel()
		after, more, err := m.Mark(ctx)
		if again = more; err != nil {
			after, again = failedPause, true
		}
		pause(ctx, after)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// attended reports whether a consumer in another process has a slot. It gives up what such consumers have acknowledged.
func (l *Log) attended() bool {
	l.Learn()
	l.trim(slog.LevelDebug)
	return len(l.elsewhere(true)) > 0
}
