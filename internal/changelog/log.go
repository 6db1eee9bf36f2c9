// Package changelog keeps what slots still need of a store's history: logs whose writes are in tables by now, and the
// files of ingests. It knows the slots of a store, and how far their consumers are.
package changelog

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A Log is the history that a store keeps for its slots. The parts of it, and where it begins, are in the manifest: an
// edit that moves writes from logs to tables says which of the logs stay. A slot that is not lost needs what comes
// after the write that its consumer has acknowledged last. History that is given up is so by an edit first, and removed
// then.
type Log struct {
	FS       vfs.FS
	Dir      string
	Logger   *slog.Logger
	MaxBytes int64         // of parts; those before are given up, and the slots that need them are lost
	MaxAge   time.Duration // of parts; 0: no bound
	Now      func() time.Time
	Trim     func() error          // makes an edit, so that what no slot needs is given up
	Unneeded func(copies []string) // is called when files are not needed any more, with the names of copies of logs

	active atomic.Bool // some slot is not lost

	writing sync.Mutex // held to write files of slots; taken before mu

	mu       sync.Mutex
	kept     manifest.Kept   // as edits have it
	names    map[string]bool // of the files of kept
	history  uint64          // the history that slots are of: the next edit begins it if kept is another
	from     base.SeqNum     // where it begins then
	slots    map[string]*slot
	failures int // copies that failed, one after the other
}

// A slot is the state of a slot.
type slot struct {
	record
	why  string // it is lost; empty: it is not
	open bool   // a consumer has it
}

// Errors of slots.
var (
	ErrLost    = errors.New("siftkv: the slot is lost: drop it, and make a new one with a new snapshot")
	errNoSlot  = fmt.Errorf("siftkv: there is no such slot: %w", fs.ErrNotExist)
	errExists  = fmt.Errorf("siftkv: there is such a slot: %w", fs.ErrExist)
	errOpen    = fmt.Errorf("siftkv: the slot has a consumer: %w", vfs.ErrLocked)
	errBadName = fmt.Errorf("%w: a slot's name has 1 to 64 letters a to z, digits, '-' and '_'", base.ErrInvalidOptions)
)

// Why slots are lost.
const (
	errOverrun  = "its consumer is further behind than MaxSlotBytes and MaxSlotAge allow"
	errDiverged = "the store has another history by now"
)

// Recover reads the slots of a store whose manifest says what is kept, and whose last write is last.
func (l *Log) Recover(kept manifest.Kept, last base.SeqNum) error {
	names, err := l.FS.List(l.Dir)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, file := range names {
		if kind, _ := manifest.ParseFileName(file); kind != manifest.FileSlot {
			continue
		}
		s := &slot{}
		s.record, err = readRecord(l.FS, filepath.Join(l.Dir, file))
		switch {
		case errors.Is(err, base.ErrCorruption):
			s.record, s.why = record{Name: manifest.SlotOf(file)}, err.Error()
		case err != nil:
			return err
		case s.History != kept.History || s.History == 0:
			s.why = errDiverged
		case s.Acked > last:
			s.why, s.History = errDiverged, 0 // durable, before other writes have these numbers
			if err := s.write(l.FS, l.Dir); err != nil {
				return err
			}
		case s.Acked < kept.From:
			s.why = errOverrun
		}
		l.put(s)
	}
	if l.live() > 0 {
		l.set(kept)
		l.history = kept.History
	}
	return nil
}

func (l *Log) put(s *slot) {
	if l.slots == nil {
		l.slots = map[string]*slot{}
	}
	l.slots[s.Name] = s
	l.active.Store(l.live() > 0)
}

// live returns how many slots are not lost. The caller holds l.mu.
func (l *Log) live() (n int) {
	for _, s := range l.slots {
		if s.why == "" {
			n++
		}
	}
	return n
}

func (l *Log) set(kept manifest.Kept) {
	l.kept, l.names = kept, map[string]bool{}
	for i := range kept.Parts {
		for _, name := range kept.Parts[i].Names() {
			l.names[name] = true
		}
	}
}

// Keep adds a part to what is kept. The next edit describes the whole store.
func (l *Log) Keep(p manifest.KeptPart) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.kept
	kept.Apply(&manifest.Kept{Parts: []manifest.KeptPart{p}})
	l.set(kept)
}

// Active reports whether some slot is not lost: logs must be durable before they are kept.
func (l *Log) Active() bool { return l.active.Load() }

// A Lost is a slot that is lost, and why.
type Lost struct{ Slot, Why string }

// Log logs it.
func (l *Lost) Log(to *slog.Logger) { to.Error("a slot is lost", "slot", l.Slot, "reason", l.Why) }

// lose loses a slot, unless it is lost, and adds it to those that were.
func (s *slot) lose(lost []Lost, why string) []Lost {
	if s.why != "" {
		return lost
	}
	s.why = why
	return append(lost, Lost{s.Name, why})
}

// Lose loses all slots: the history that they need is not there. The next edit begins another history, which none of
// them is of: they stay lost.
func (l *Log) Lose(why string) {
	var lost []Lost
	l.mu.Lock()
	for _, s := range l.slots {
		lost = s.lose(lost, why)
	}
	l.endIfUnused()
	l.mu.Unlock()
	for i := range lost {
		lost[i].Log(l.Logger)
	}
}

// endIfUnused ends the history if no slot needs it: nothing is kept from now on, and so it has a hole. The next edit
// says so. The caller holds l.mu.
func (l *Log) endIfUnused() {
	if live := l.live() > 0; l.active.Swap(live) && !live {
		l.history, l.from = rand.Uint64()|1, 0
	}
}

// Describe adds what is kept to an edit that describes the whole store.
func (l *Log) Describe(e *manifest.Edit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.live() == 0:
		return // slots of any history are lost
	case l.history != l.kept.History:
		e.Slots = manifest.Kept{History: l.history, From: l.from}
	default:
		e.Slots = l.kept
	}
	e.Features |= manifest.FeatureSlots
}

// Change completes an edit: it adds what is given up, and of the parts that the edit has it leaves those that a slot
// needs. The caller holds the locks of edits.
func (l *Log) Change(e *manifest.Edit) {
	parts := e.Slots.Parts
	e.Slots.Parts = nil
	l.mu.Lock()
	defer l.mu.Unlock()
	live := l.live() > 0
	if !live {
		parts = nil
	}
	all := l.kept
	if l.history != l.kept.History {
		all = manifest.Kept{History: l.history, From: l.from}
	} else if !live {
		return
	}
	change := manifest.Kept{From: l.needed(all.From), Parts: parts}
	all.Apply(&change)
	all.Apply(&manifest.Kept{From: l.overrun(all.Parts)})
	if l.history == l.kept.History && all.From == l.kept.From && len(parts) == 0 {
		return
	}
	e.Slots = manifest.Kept{History: all.History, From: all.From}
	for _, p := range parts {
		if p.Last > all.From {
			e.Slots.Parts = append(e.Slots.Parts, p)
		}
	}
	if live {
		e.Features |= manifest.FeatureSlots
	}
}

// needed returns the last write that no slot needs, or from if there are none. The caller holds l.mu.
func (l *Log) needed(from base.SeqNum) base.SeqNum {
	acked := base.MaxSeqNum
	for _, s := range l.slots {
		if s.why == "" {
			acked = min(acked, s.Acked)
		}
	}
	if acked == base.MaxSeqNum {
		return from
	}
	return acked
}

// overrun returns the last write of the parts that are too old, or too many bytes; 0 if there are none. The newest part
// stays: who has all before it is not behind.
func (l *Log) overrun(parts []manifest.KeptPart) (from base.SeqNum) {
	left, oldest := l.MaxBytes, uint64(0)
	if l.MaxAge > 0 {
		oldest = uint64(max(l.Now().Add(-l.MaxAge).Unix(), 0))
	}
	for i, p := range slices.Backward(parts) {
		if left -= p.Bytes; i < len(parts)-1 && (left < 0 || p.Time < oldest) {
			return p.Last
		}
	}
	return 0
}

// Changed is called when an edit is made. Slots that need what it gave up are lost: what says so is the result, to be
// logged when the caller has no lock.
func (l *Log) Changed(e *manifest.Edit) (lost []Lost) {
	if e.Slots.History == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before, kept := l.names, l.kept
	kept.Apply(&e.Slots)
	l.set(kept)
	for _, s := range l.slots {
		if s.History == kept.History && s.Acked < kept.From {
			lost = s.lose(lost, errOverrun)
		}
	}
	l.endIfUnused()
	gone, copies := false, []string(nil)
	for name := range before {
		if l.names[name] {
			continue
		}
		gone = true
		if kind, _ := manifest.ParseFileName(name); kind == manifest.FileKept {
			copies = append(copies, name)
		}
	}
	if gone && l.Unneeded != nil {
		l.Unneeded(copies)
	}
	return lost
}

// Keeps reports whether a slot needs a file.
func (l *Log) Keeps(path string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names[filepath.Base(path)]
}

// After returns the first part with writes after number at, if there is one, for a slot that is not lost.
func (l *Log) After(name string, at base.SeqNum) (p manifest.KeptPart, ok bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.slots[name]
	switch {
	case s == nil:
		return p, false, fmt.Errorf("%w: %s", errNoSlot, name)
	case s.why != "":
		return p, false, fmt.Errorf("%w: %s: %s", ErrLost, name, s.why)
	case at < s.Acked: // the consumer's slot was dropped, and this one has its name
		return p, false, fmt.Errorf("%w: %s", errNoSlot, name)
	}
	if l.history != l.kept.History {
		return p, false, nil // the slot's history has no parts yet
	}
	i, _ := slices.BinarySearchFunc(l.kept.Parts, at+1, func(p manifest.KeptPart, at base.SeqNum) int {
		if p.Last < at {
			return -1
		}
		return 1
	})
	if i == len(l.kept.Parts) {
		return p, false, nil
	}
	return l.kept.Parts[i], true, nil
}

// Begin makes a slot at write at, in memory alone: all later history is kept from now on. The caller leads the commit
// pipeline, and at is the last write that is visible. An edit makes the history durable, and Save the slot after it.
func (l *Log) Begin(name string, at base.SeqNum) error {
	if !manifest.IsSlotName(name) {
		return fmt.Errorf("%w: %q", errBadName, name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slots[name] != nil {
		return fmt.Errorf("%w: %s", errExists, name)
	}
	if l.live() == 0 {
		l.history, l.from = rand.Uint64()|1, at
	}
	l.put(&slot{record: record{Name: name, History: l.history, Acked: at}, open: true})
	return nil
}

// Save makes a slot durable as it is, unless it is lost by now.
func (l *Log) Save(name string) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	r, err := l.recordOf(name)
	if err != nil {
		return err
	}
	return r.write(l.FS, l.Dir)
}

// recordOf returns the record of a slot that a consumer has.
func (l *Log) recordOf(name string) (r record, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.slots[name]
	switch {
	case s == nil:
		return r, fmt.Errorf("%w: %s", errNoSlot, name)
	case s.why != "":
		return r, fmt.Errorf("%w: %s: %s", ErrLost, name, s.why)
	}
	return s.record, nil
}

// Open gives a slot to one consumer, and returns the last write that was acknowledged.
func (l *Log) Open(name string) (acked base.SeqNum, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.slots[name]
	switch {
	case s == nil:
		return 0, fmt.Errorf("%w: %s", errNoSlot, name)
	case s.why != "":
		return 0, fmt.Errorf("%w: %s: %s", ErrLost, name, s.why)
	case s.open:
		return 0, fmt.Errorf("%w: %s", errOpen, name)
	}
	s.open = true
	return s.Acked, nil
}

// Close takes a slot from its consumer.
func (l *Log) Close(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.slots[name]; s != nil {
		s.open = false
	}
}

// Ack makes durable that the consumer of a slot has all writes up to seq, which was delivered to it. A number that was
// acknowledged before changes nothing. It is for the consumer alone.
func (l *Log) Ack(name string, seq base.SeqNum) error {
	trim, err := l.ack(name, seq)
	if err == nil && trim {
		if err := l.Trim(); err != nil {
			l.Logger.Warn("what no slot needs any more stays for now", "dir", l.Dir, "error", err)
		}
	}
	return err
}

// ack is Ack; it reports whether something can be given up.
func (l *Log) ack(name string, seq base.SeqNum) (trim bool, err error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	r, err := l.recordOf(name)
	if err != nil || seq <= r.Acked {
		return false, err
	}
	r.Acked = seq
	if err := r.write(l.FS, l.Dir); err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.slots[name]
	if s.why != "" { // since the file was written
		return false, fmt.Errorf("%w: %s: %s", ErrLost, name, s.why)
	}
	s.Acked = seq
	parts := l.kept.Parts
	return len(parts) > 0 && parts[0].Last <= l.needed(0), nil
}

// Drop removes a slot that no consumer has.
func (l *Log) Drop(name string) error {
	l.writing.Lock()
	err := l.drop(name, false)
	l.writing.Unlock()
	if err != nil {
		return err
	}
	return l.Trim()
}

// drop removes a slot, one that is open only if forced. The caller holds l.writing.
func (l *Log) drop(name string, forced bool) error {
	l.mu.Lock()
	s := l.slots[name]
	switch {
	case s == nil:
		l.mu.Unlock()
		return fmt.Errorf("%w: %s", errNoSlot, name)
	case s.open && !forced:
		l.mu.Unlock()
		return fmt.Errorf("%w: %s", errOpen, name)
	}
	s.open = true // nothing opens it meanwhile
	l.mu.Unlock()
	err := removeRecord(l.FS, l.Dir, name)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil && !forced {
		s.open = false
		return err
	}
	delete(l.slots, name)
	l.endIfUnused()
	return err
}

// Forget removes a slot that could not be made durable.
func (l *Log) Forget(name string) {
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.drop(name, true); err != nil {
		l.Logger.Warn("a slot that was not made may be there after the next start", "slot", name, "error", err)
	}
}

// maxCopyFailures is how many attempts to copy a history may fail for reasons that may pass.
const maxCopyFailures = 5

// Passes reports whether a copy that failed may work when it is tried again.
func Passes(err error) bool {
	return err != nil && !errors.Is(err, errHole) && !errors.Is(err, base.ErrCorruption)
}

// CopyFailed is called with the outcome of each copy. It returns an error if the copy should be tried again. Otherwise
// slots are lost if it has failed: the store goes on without them.
func (l *Log) CopyFailed(err error) error {
	l.mu.Lock()
	l.failures++
	again := Passes(err) && l.failures < maxCopyFailures
	if !again {
		l.failures = 0
	}
	l.mu.Unlock()
	if again {
		return err
	}
	if err != nil {
		l.Lose(err.Error())
	}
	return nil
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
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.slots)) {
		s := l.slots[name]
		state := State{Name: name, Acked: uint64(s.Acked), Lost: s.why, Open: s.open}
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
