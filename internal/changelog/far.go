package changelog

import (
	"context"
	"errors"
	"time"

	"github.com/siftkv/siftkv/internal/base"
)

// In an object store the consumer of a slot may be on another machine. It has no lock, and writes no file of the store:
// it has the claim to the slot's positions. Each is a record, as the slot's file is, which the writer takes over.

// maxAskTime bounds how long the writer waits for an answer: what consumers on other machines have acknowledged, or the
// claim to a slot. It waits less if its directory is closed.
const maxAskTime = 5 * time.Second

// LearnFar takes over what consumers on other machines have acknowledged. The writer calls it before a flush, which
// then keeps less. An error leaves what is known of a slot as it is. LearnFar reports whether the object store has told
// all there is to know. It does not wait for others that ask. With settled, the caller says that all writes in tables
// are visible.
func (l *Log) LearnFar(settled bool) (known bool) {
	if l.Positions == nil {
		return true
	}
	if !l.asking.TryLock() {
		return false
	}
	defer l.asking.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), maxAskTime)
	defer cancel()
	known = true
	for _, s := range l.away(true) {
		err := s.positions.Newest(ctx, func(text string) error { return l.learnFar(s, text, settled) })
		if err != nil {
			l.Logger.Warn("it is not known what the consumer of a slot has acknowledged", "slot", s.Name, "error", err)
			known = known && errors.Is(err, base.ErrCorruption) // which does not pass: the history cannot wait for it
		}
	}
	if known && settled {
		l.mu.Lock()
		l.ahead = false
		l.mu.Unlock()
	}
	return known
}

// LearnBeforeEdit is Learn before an edit. It is LearnFar too if the edit before has put something off. The caller
// holds the lock of the manifest.
func (l *Log) LearnBeforeEdit() {
	l.Learn()
	l.mu.Lock()
	ask := l.late || l.ahead
	l.mu.Unlock()
	if ask {
		l.known = l.LearnFar(true) // an edit ends when what it has is visible
	}
}

// loses reports whether an edit may give up what is up to number from, and more than MaxBytes and MaxAge allow. While
// it is not known whether a consumer on another machine has acknowledged it in time, a later edit does that: there is
// no way back for a slot that is lost. The caller holds l.mu.
func (l *Log) loses(from base.SeqNum) bool {
	known := l.known || l.Positions == nil
	l.late, l.known = false, false
	for _, s := range l.slots {
		l.late = l.late || !known && s.why == "" && s.lock == nil && s.Acked < from
	}
	return !l.late
}

// learnFar takes over a position of a slot that no consumer in this process has. A slot whose consumer has what the
// store has lost is lost, but that is known only if it is settled. The caller holds l.asking.
func (l *Log) learnFar(s *slot, text string, settled bool) error {
	r, err := positionOf(s.Name, text)
	l.mu.Lock()
	now := s.record
	l.mu.Unlock()
	if err != nil || r.History != now.History || r.Acked <= now.Acked {
		return err
	}
	switch ahead := r.Acked > l.Last(); {
	case ahead && settled:
		r.Acked, r.History = now.Acked, 0 // durable, before other writes have these numbers
	case ahead:
		l.mu.Lock()
		l.ahead = true
		l.mu.Unlock()
		return lostError(s.Name, whyDiverged)
	}
	if err := r.write(l.FS, l.Dir); err != nil { // before an edit gives up what the next writer thinks is needed
		return err
	}
	l.learn(s, r)
	l.Report()
	return nil
}

// positionOf returns the record in a position of a slot; an empty one if there is none.
func positionOf(slot, text string) (r record, err error) {
	if text == "" {
		return r, nil
	}
	if r, err = parseRecord(text, slot); err != nil {
		err = &base.CorruptionError{File: "slot/" + slot, Offset: -1, Cause: err,
			What: "the acknowledgement of a consumer on another machine: drop the slot"}
	}
	return r, err
}

// claimFar ends the claim of a consumer on another machine, if there was one ever, and takes over what it has
// acknowledged. Where nothing was ever put it claims nothing, or each slot would leave an object.
//
// Of a slot that is dropped the position stays: a slot that gets the name later is beyond it, and a writer that is
// fenced, and drops nothing, loses none. If it is damaged, one that says nothing takes its place. The caller holds
// l.asking, and the slot's lock.
func (l *Log) claimFar(s *slot, dropped bool) error {
	if s.positions == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxAskTime)
	defer cancel()
	text, err := s.positions.Claim(ctx, false)
	switch {
	case err == nil && dropped:
		_, err = positionOf(s.Name, text)
	case err == nil:
		err = l.learnFar(s, text, false)
	}
	if dropped && errors.Is(err, base.ErrCorruption) {
		err = s.positions.Put(ctx, string((&record{Name: s.Name}).sealed()))
	}
	return err
}
