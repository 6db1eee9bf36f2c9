package changelog

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A Log is the history that a store keeps for its slots. The parts of it, and where it begins, are in the manifest: an
// edit that moves writes from logs to tables says which of the logs stay. A slot that is not lost needs what comes
// after the write that its consumer has acknowledged last. History that is given up is so by an edit first, and removed
// then.
type Log struct {
	FS       vfs.FS
	Dir      string
	Remote   bool // the files are in an object store: where it takes no copy of a log, it takes no table either
	Logger   *slog.Logger
	MaxBytes int64         // of parts; those before are given up, and the slots that need them are lost
	MaxAge   time.Duration // of parts; 0: no bound
	Now      func() time.Time
	Last     func() base.SeqNum              // the last write that is visible
	Trim     func() error                    // makes an edit, so that what no slot needs is given up
	ReadOnly bool                            // another process writes the store
	Unneeded func(parts []manifest.KeptPart) // is called with all that were kept when some are not any more

	// Positions returns those of a slot's consumers on other machines; nil: there can be none.
	Positions func(slot string) objectdir.Positions

	active atomic.Bool // some slot is not lost

	// A goroutine holds writing while it writes the file of a slot that has a consumer in this process, or releases its
	// lock. It holds asking while it opens or drops a slot, or asks what consumers elsewhere have acknowledged. So no
	// acknowledgement waits for a request about another slot before it is durable.
	asking, writing sync.Mutex // mu is taken after them

	mu       sync.Mutex
	kept     manifest.Kept   // as edits have it
	nums     map[uint64]bool // of the files of kept
	history  uint64          // the history that slots are of: the next edit begins it if kept is another
	from     base.SeqNum     // where it begins then
	slots    map[string]*slot
	losses   []slot // that were not logged
	failures int    // copies that failed, one after the other
	late     bool   // what is over MaxBytes or MaxAge waits until it is known what consumers elsewhere have
	ahead    bool   // one of these may have what the store has lost: the next edit settles it
	known    bool   // that was asked for the next edit, whose locks guard it

	consumers sync.Map // of *Consumer, by slot, of a store that another process writes
}

// Recover reads the slots of a store whose manifest says what is kept, and whose last write is last. If why is not
// empty, it says why all of them are lost. With ReadOnly it writes nothing.
func (l *Log) Recover(kept manifest.Kept, last base.SeqNum, why string) error {
	names, err := l.FS.List(l.Dir)
	if err != nil {
		return err
	}
	ahead := false
	for _, file := range names {
		slot := manifest.SlotOf(file)
		switch kind, _ := manifest.ParseFileName(file); {
		case kind == manifest.FileSlot:
			err = l.recoverSlot(slot, kept, last, why, &ahead)
		case !l.ReadOnly && kind == manifest.FileConsumer && !slices.Contains(names, manifest.SlotName(slot)):
			_ = l.FS.Remove(filepath.Join(l.Dir, file))
		}
		if err != nil {
			return err
		}
	}
	l.mu.Lock()
	if l.live() {
		l.apply(&kept)
		l.history = kept.History
	}
	l.mu.Unlock()
	if ahead {
		l.Lose("a consumer in another process has writes that the store has lost")
	}
	l.Report()
	if l.ReadOnly || !l.Active() {
		return nil // what is left behind is removed with all that the store does not need
	}
	if n, _, err := manifest.Readers(l.FS, l.Dir); err != nil || n > 0 {
		return err // they may need what is removed with all that the store does not need
	}
	for _, file := range names { // copies of starts of the store that broke off, which a full disk repeats
		if kind, _ := manifest.ParseFileName(file); kind == manifest.FileKept && !kept.Has(file) {
			_ = l.FS.Remove(filepath.Join(l.Dir, file))
		}
	}
	return nil
}

// recoverSlot is Recover for a slot. It sets ahead if a consumer in another process is ahead of the store. Its slot
// cannot be marked as lost, since the consumer may write the file at any time.
func (l *Log) recoverSlot(name string, kept manifest.Kept, last base.SeqNum, why string, ahead *bool) error {
	file := filepath.Join(l.Dir, manifest.SlotName(name))
	r, err := readRecord(l.FS, file)
	s := &slot{record: r}
	switch {
	case errors.Is(err, base.ErrCorruption):
		s.record, s.why = record{Name: name}, err.Error()
	case err != nil:
		return err
	case s.History != kept.History || s.History == 0:
		s.why = whyDiverged
	case why != "": // no file is written: the next manifest has another history
		s.why = why
	case s.Acked > last:
		lock, err := lockSlot(l.FS, l.Dir, name)
		if errors.Is(err, vfs.ErrLocked) {
			*ahead = true
			break
		}
		if err != nil {
			return err
		}
		s.why, s.History = whyDiverged, 0 // durable, before other writes have these numbers
		if err := errors.Join(s.write(l.FS, l.Dir), lock.Close()); err != nil {
			return err
		}
	case s.Acked < kept.From:
		s.why = whyOverrun
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(s)
	if s.why != "" && !l.ReadOnly {
		l.losses = append(l.losses, *s)
	}
	return nil
}

// apply makes a change of what is kept. The caller holds l.mu.
func (l *Log) apply(change *manifest.Kept) {
	l.kept.Apply(change)
	l.nums = map[uint64]bool{}
	for _, p := range l.kept.Parts {
		l.nums[p.Log] = true
		for _, num := range p.Files {
			l.nums[num] = true
		}
	}
}

// Keep adds parts to what is kept. The next edit describes the whole store.
func (l *Log) Keep(parts ...manifest.KeptPart) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.apply(&manifest.Kept{Parts: parts})
}

// Active reports whether some slot is not lost.
func (l *Log) Active() bool { return l.active.Load() }

// Acknowledged returns the last write, up to number last, that no slot needs. What has those after it must be durable
// before it is kept.
func (l *Log) Acknowledged(last base.SeqNum) base.SeqNum {
	l.mu.Lock()
	defer l.mu.Unlock()
	return min(l.needed(last), last)
}

// Lose loses all slots: the history that they need is not there. The next edit begins another history, which none of
// them is of: they stay lost.
func (l *Log) Lose(why string) {
	l.mu.Lock()
	for _, s := range l.slots {
		l.lose(s, why)
	}
	l.endIfUnused()
	l.mu.Unlock()
	l.Report()
}

// endIfUnused ends the history if no slot needs it: nothing is kept from now on, and so it has a hole. The next edit
// says so. The caller holds l.mu.
func (l *Log) endIfUnused() {
	if live := l.live(); l.active.Swap(live) && !live {
		l.history, l.from = rand.Uint64()|1, 0
	}
}

// current returns what is kept of the history that slots are of. The caller holds l.mu.
func (l *Log) current() manifest.Kept {
	if l.history != l.kept.History {
		return manifest.Kept{History: l.history, From: l.from} // the next edit begins it
	}
	return l.kept
}

// Describe adds what is kept to an edit that describes the whole store. Without it all slots are lost.
func (l *Log) Describe(e *manifest.Edit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live() {
		e.Slots, e.Features = l.current(), e.Features|manifest.FeatureSlots
	}
}

// Change completes an edit: it adds what is given up, and of the parts that the edit has it leaves those that a slot
// needs. The caller holds the locks of edits.
func (l *Log) Change(e *manifest.Edit) {
	parts := e.Slots.Parts
	e.Slots.Parts = nil
	l.mu.Lock()
	defer l.mu.Unlock()
	live, begun := l.live(), l.history == l.kept.History
	if !live {
		parts = nil
	}
	all := l.current()
	all.Apply(&manifest.Kept{From: l.needed(all.From), Parts: parts})
	if from := l.overrun(all.Parts); l.loses(from) {
		all.Apply(&manifest.Kept{From: from})
	}
	if begun && (!live || all.From == l.kept.From && len(parts) == 0) {
		return
	}
	e.Features |= manifest.FeatureSlots
	e.Slots.Apply(&manifest.Kept{History: all.History, From: all.From, Parts: parts})
}

// needed returns the last write that no slot needs, or none if all slots are lost. The caller holds l.mu.
func (l *Log) needed(none base.SeqNum) base.SeqNum {
	acked := base.MaxSeqNum
	for _, s := range l.slots {
		if s.why == "" {
			acked = min(acked, s.Acked)
		}
	}
	if acked < base.MaxSeqNum {
		return acked
	}
	return none
}

// overrun returns the last write of the parts that are too old, or too many bytes; 0 if there are none. The newest part
// stays: a consumer that has all before it is not behind.
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

// Changed is called when an edit is made. Slots that need what it gave up are lost: the caller calls Report when it has
// no lock.
func (l *Log) Changed(e *manifest.Edit) {
	if e.Slots.History == 0 {
		return
	}
	l.mu.Lock()
	was := l.kept
	l.apply(&e.Slots)
	kept := l.kept
	for _, s := range l.slots {
		if s.History == kept.History && s.Acked < kept.From {
			l.lose(s, whyOverrun)
		}
	}
	l.endIfUnused()
	l.mu.Unlock()
	if len(was.Parts) > 0 && l.Unneeded != nil && (kept.History != was.History || kept.From > was.From) {
		l.Unneeded(was.Parts)
	}
}

// Keeps reports whether a slot needs a file.
func (l *Log) Keeps(path string) bool {
	num := manifest.KeptNum(path)
	l.mu.Lock()
	defer l.mu.Unlock()
	return num > 0 && l.nums[num]
}

// After returns the first part with writes after number at, if there is one, for a slot that is not lost.
func (l *Log) After(name string, at base.SeqNum) (p manifest.KeptPart, ok bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch s, err := l.usable(name); {
	case err != nil:
		return p, false, err
	case at < s.Acked: // the consumer's slot was dropped, and this one has its name
		return p, false, errNoSlot("find", name)
	}
	kept := l.current()
	p, ok = kept.After(at)
	return p, ok, nil
}
