package stress

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"
)

// A watch notices that a store has come to a stop: for some time somebody has waited for
// it, no operation has ended, and nothing was written to the disk. How long that takes is no
// measure of anything: the time has only to be longer than any machine stands still.
type watch struct {
	patience time.Duration
	changes  func() uint64 // calls that changed the disk so far

	mu    sync.Mutex
	doing map[int]string
	ended uint64
	stop  chan struct{}
	hung  chan *Finding
}

func startWatch(patience time.Duration, changes func() uint64) *watch {
	w := &watch{patience: patience, changes: changes, doing: map[int]string{}, stop: make(chan struct{}),
		hung: make(chan *Finding, 1)}
	go w.run()
	return w
}

func (w *watch) begin(who int, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.doing[who] = what
}

func (w *watch) end(who int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.doing, who)
	if who != followerGoroutine { // that a reader goes on says nothing about writers
		w.ended++
	}
}

// whose numbers of those who are not workers.
const (
	mainGoroutine = -1 - iota
	followerGoroutine
)

func (w *watch) close() { close(w.stop) }

func (w *watch) run() {
	var ended, changes uint64
	still := 0
	const looks = 10
	for {
		select {
		case <-w.stop:
			return
		case <-time.After(w.patience / looks):
		}
		w.mu.Lock()
		waiting := len(w.doing) > 0
		same := ended == w.ended && changes == w.changes()
		ended, changes = w.ended, w.changes()
		var doing []string
		for who, what := range w.doing {
			doing = append(doing, fmt.Sprintf("%d: %s", who, what))
		}
		w.mu.Unlock()
		if still++; !waiting || !same {
			still = 0
		}
		if still > looks {
			w.hung <- found("hang", "for %v nothing was written and nothing ended, while these wait: %s\n%s",
				w.patience, strings.Join(doing, ", "), stacks())
			return
		}
	}
}

// stacks returns where the goroutines of stores are.
func stacks() string {
	buf := make([]byte, 4<<20)
	var kept []string
	for s := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(s, "siftkv/kv.") {
			kept = append(kept, s)
		}
	}
	return strings.Join(kept, "\n\n")
}
