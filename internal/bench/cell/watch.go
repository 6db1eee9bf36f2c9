package cell

import (
	"context"
	"time"

	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/measure"
)

// clockEvery is how many writes share a reading of the clock.
const clockEvery = 16

// watch returns a store that notes on a timeline what is written to it. It can be left
// to itself if the store can.
func watch(s engine.Store, line *measure.Recorder) engine.Store {
	w := &watched{Store: s, line: line}
	if g, ok := s.(measure.RestingStore); ok {
		return watchedGrower{w, g}
	}
	return w
}

// A watched store has its writes counted over time.
type watched struct {
	engine.Store
	line *measure.Recorder
	n    int // writes that the timeline does not know of
}

// Put writes a key.
func (w *watched) Put(key, value []byte) error {
	if err := w.Store.Put(key, value); err != nil {
		return err
	}
	if w.n++; w.n == clockEvery {
		w.tell()
	}
	return nil
}

// tell tells the timeline.
func (w *watched) tell() {
	w.line.Add(w.n, time.Now())
	w.n = 0
}

// Settle settles the store.
func (w *watched) Settle(ctx context.Context) error {
	w.tell()
	return w.Store.Settle(ctx)
}

// A watchedGrower is a watched store that can be left to itself.
type watchedGrower struct {
	*watched
	grower measure.RestingStore
}

// Rest leaves the store to itself.
func (w watchedGrower) Rest(ctx context.Context) error {
	w.tell()
	return w.grower.Rest(ctx)
}
