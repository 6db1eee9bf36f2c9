package changelog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A slot is the state of a slot.
type slot struct {
	record
	why  string    // it is lost; empty: it is not
	lock io.Closer // of the consumer in this process; nil: there is none

	positions objectdir.Positions // of consumers on other machines; nil: there can be none
}

// ErrLost is matched if a slot is lost.
var ErrLost = errors.New("siftkv: the slot is lost: drop it, and make a new one with a new snapshot")

func errNoSlot(work, slot string) error {
	return fmt.Errorf("siftkv: %s slot %s: %w", work, slot, fs.ErrNotExist)
}
func errExists(slot string) error {
	return fmt.Errorf("siftkv: create slot %s: %w; drop it first", slot, fs.ErrExist)
}
func errOpen(work, slot string) error {
	return fmt.Errorf("siftkv: %s slot %s: it has a consumer, which must close it first: %w", work, slot, vfs.ErrLocked)
}

// Why slots are lost.
const (
	whyOverrun  = "its consumer is further behind than MaxSlotBytes and MaxSlotAge allow"
	whyDiverged = "the store has another history by now"
)

func (l *Log) put(s *slot) {
	if l.slots == nil {
		l.slots = map[string]*slot{}
	}
	if l.Positions != nil {
		s.positions = l.Positions(s.Name)
	}
	l.slots[s.Name] = s
	l.active.Store(l.live())
}

// live reports whether some slot is not lost. The caller holds l.mu.
func (l *Log) live() bool { return l.needed(base.MaxSeqNum) < base.MaxSeqNum }

// lose loses a slot, unless it is lost. The caller holds l.mu, and then has Report log it.
func (l *Log) lose(s *slot, why string) {
	if s.why == "" {
		s.why = why
		l.losses = append(l.losses, *s)
	}
}

// Report logs which slots are lost since the last call.
func (l *Log) Report() {
	l.mu.Lock()
	losses := l.losses
	l.losses = nil
	l.mu.Unlock()
	for _, lost := range losses {
		l.Logger.Error("a slot is lost", "slot", lost.Name, "reason", lost.why)
	}
}

// Lock takes the lock of a slot that is about to be made.
func (l *Log) Lock(name string) (io.Closer, error) {
	if !manifest.IsSlotName(name) {
		return nil, fmt.Errorf("%w: a slot's name has 1 to 64 letters a to z, digits, '-' and '_': %q",
			base.ErrInvalidOptions, name)
	}
	if _, err := l.free("create", name); !errors.Is(err, fs.ErrNotExist) {
		return nil, errExists(name)
	}
	return lockSlot(l.FS, l.Dir, name)
}

// Begin makes a slot at write at, in memory alone: all later history is kept from now on. The caller leads the commit
// pipeline, and at is the last write that is visible. An edit makes the history durable, and Save the slot after it.
// The lock is the slot's, if there is no error.
func (l *Log) Begin(name string, at base.SeqNum, lock io.Closer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slots[name] != nil {
		return errExists(name)
	}
	if !l.live() {
		l.history, l.from = rand.Uint64()|1, at
	}
	l.put(&slot{record: record{Name: name, History: l.history, Acked: at}, lock: lock})
	return nil
}

// Save makes a slot durable as it is, unless it is lost by now.
func (l *Log) Save(name string) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	r, err := l.recordOf(name)
	if err == nil {
		err = r.write(l.FS, l.Dir)
	}
	return err
}

// recordOf returns the record of a slot that is not lost.
func (l *Log) recordOf(name string) (r record, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, err := l.usable(name)
	if err == nil {
		r = s.record
	}
	return r, err
}

// usable returns a slot that is not lost. The caller holds l.mu.
func (l *Log) usable(name string) (*slot, error) {
	switch s := l.slots[name]; {
	case s == nil:
		return nil, errNoSlot("find", name)
	case s.why != "":
		return nil, lostError(name, s.why)
	default:
		return s, nil
	}
}

func lostError(name, why string) error { return fmt.Errorf("%w: %s: %s", ErrLost, name, why) }

// Open gives a slot to one consumer, and returns the last write that was acknowledged.
func (l *Log) Open(name string) (acked base.SeqNum, err error) {
	l.asking.Lock()
	defer l.asking.Unlock()
	if _, err := l.recordOf(name); err != nil {
		return 0, err
	}
	s, err := l.free("open", name)
	if err != nil {
		return 0, err
	}
	lock, err := lockSlot(l.FS, l.Dir, name)
	if err != nil {
		return 0, err
	}
	l.Learn() // another process may have acknowledged more
	err = l.claimFar(s, false)
	l.mu.Lock()
	defer l.mu.Unlock()
	_, lost := l.usable(name)
	if err = cmp.Or(lost, err); err != nil {
		return 0, errors.Join(err, lock.Close())
	}
	s.lock = lock
	return s.Acked, nil
}

// free returns a slot that has no consumer in this process, and gets none while the caller holds l.asking.
func (l *Log) free(work, name string) (*slot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch s := l.slots[name]; {
	case s == nil:
		return nil, errNoSlot(work, name)
	case s.lock != nil:
		return nil, errOpen(work, name)
	default:
		return s, nil
	}
}

// Close takes a slot from its consumer.
func (l *Log) Close(name string) {
	l.writing.Lock() // no acknowledgement is under way: the next consumer may be in another process
	defer l.writing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.slots[name]; s != nil && s.lock != nil {
		l.release(name, s.lock)
		s.lock = nil
	}
}

func (l *Log) release(name string, lock io.Closer) {
	if err := lock.Close(); err != nil {
		l.Logger.Warn("the lock of a slot was not released", "slot", name, "error", err)
	}
}

// Ack makes durable that the consumer of a slot has all writes up to seq, which was delivered to it. A number that was
// acknowledged before changes nothing. It is for the consumer alone.
func (l *Log) Ack(name string, seq base.SeqNum) error {
	err := l.ack(name, seq)
	if err == nil {
		l.trim(slog.LevelWarn)
	}
	return err
}

// trim makes an edit if it gives something up. The level is that of an error.
func (l *Log) trim(level slog.Level) {
	l.mu.Lock()
	trims := len(l.kept.Parts) > 0 && l.kept.Parts[0].Last <= l.needed(0)
	l.mu.Unlock()
	if !trims {
		return
	}
	if err := l.Trim(); err != nil {
		l.Logger.Log(context.Background(), level, "what no slot needs stays for now", "dir", l.Dir, "error", err)
	}
}

// ack is Ack without an edit.
func (l *Log) ack(name string, seq base.SeqNum) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	r, err := l.recordOf(name)
	if err != nil || seq <= r.Acked {
		return err
	}
	if _, err := l.free("acknowledge in", name); err == nil {
		return fmt.Errorf("siftkv: acknowledge in slot %s: it was closed: %w", name, fs.ErrNotExist)
	}
	r.Acked = seq
	if err := r.write(l.FS, l.Dir); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s, err := l.usable(name) // it may be lost since the file was written
	if err == nil {
		s.Acked = seq
	}
	return err
}

// Drop removes a slot that no consumer has.
func (l *Log) Drop(name string) error {
	l.asking.Lock()
	err := l.drop(name)
	l.asking.Unlock()
	if err != nil {
		return err
	}
	return l.Trim()
}

// drop is Drop without an edit. The caller holds l.asking.
func (l *Log) drop(name string) error {
	s, err := l.free("drop", name)
	if err != nil {
		return err
	}
	lock, err := lockSlot(l.FS, l.Dir, name)
	if err != nil {
		return err
	}
	if err = l.claimFar(s, true); err == nil {
		err = removeRecord(l.FS, l.Dir, name)
		if err == nil { // a consumer that makes the first claim after this finds that the file is gone
			err = l.claimFar(s, true)
		}
		if err != nil {
			l.mu.Lock()
			r := s.record
			l.mu.Unlock()
			err = errors.Join(err, r.write(l.FS, l.Dir)) // the file may be gone, and the slot stays
		}
	}
	if err != nil {
		return errors.Join(err, lock.Close())
	}
	l.remove(s, lock)
	return nil
}

// remove removes a slot that has no file, and releases its lock.
func (l *Log) remove(s *slot, lock io.Closer) {
	_ = l.FS.Remove(filepath.Join(l.Dir, manifest.ConsumerName(s.Name))) // the next start tries again
	l.release(s.Name, lock)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.slots, s.Name)
	l.endIfUnused()
}

// Forget removes a slot that could not be made durable.
func (l *Log) Forget(name string) {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	s := l.slots[name]
	l.mu.Unlock()
	if err := removeRecord(l.FS, l.Dir, name); err != nil {
		l.Logger.Warn("a slot that was not made may be there after the next start", "slot", name, "error", err)
	}
	l.remove(s, s.lock)
}
