package storecmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/siftkv/siftkv/internal/backup"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// positionKey is the key under which a copy has its position, after all keys of text. Each batch of changes sets it: so
// the copy has each change once. It is no part of what is copied and compared.
const positionKey = "\xffsiftkv/follow"

// A position says which writes a copy has: those of a history up to one.
type position struct {
	Slot    string `json:"slot"`
	History string `json:"history"` // it has the slot; another one of the same store has other writes
	Write   uint64 `json:"write"`
	Adopted bool   `json:"adopted,omitempty"` // the store may be no copy: it was not compared yet
}

// A source is what the manifest of a store says of its past.
type source struct {
	storeID uint64
	history string // of its slots
	last    uint64 // write in tables
	merger  string // of operands in tables
}

// A program may write another manifest of a store, and remove the one that is about to be read.
const (
	sourceTries = 10
	sourcePause = 10 * time.Millisecond
)

// sourceOf reads the manifest of the store, which may be in use.
func (f *following) sourceOf(ctx context.Context) (s source, err error) {
	fsys, dir := vfs.OS, string(f.From)
	if f.From.remote() {
		o, err := f.p.objects(ctx, f.From, false)
		if err != nil {
			return s, err
		}
		defer func() { _ = o.Store.Close() }() // it was read only
		directory, err := openDirectory(o)
		if err != nil {
			return s, err
		}
		defer func() { _ = directory.Close() }()
		fsys, dir = directory, objectdir.Root
	}
	for try := 1; ; try++ {
		if s, err = readSource(fsys, dir); !errors.Is(err, fs.ErrNotExist) || try == sourceTries {
			return s, err
		}
		time.Sleep(sourcePause)
	}
}

func readSource(fsys vfs.FS, dir string) (s source, err error) {
	num, err := manifest.Current(fsys, dir)
	if err != nil {
		return s, err
	}
	var kept manifest.Kept
	err = manifest.Load(fsys, dir, num, func(e *manifest.Edit) error {
		s.storeID, s.last = cmp.Or(e.StoreID, s.storeID), max(s.last, uint64(e.LastSeq))
		s.merger = cmp.Or(e.Merger, s.merger)
		kept.Apply(&e.Slots)
		return nil
	})
	s.history = fmt.Sprintf("%016x", kept.History)
	return s, err
}

// findCopy finds out whether there is a copy, and its position.
func (f *following) findCopy(ctx context.Context) error {
	err := (&Dir{f.To}).read(ctx, f.p, func(db *kv.DB) error {
		f.copied = true
		value, err := db.Get([]byte(positionKey))
		switch {
		case errors.Is(err, kv.ErrNotFound):
			return nil
		case err != nil:
			return err
		}
		if err := json.Unmarshal(value, &f.at); err != nil {
			return fmt.Errorf("%w: the position of %s: %w", errDamage, f.To, err)
		}
		return nil
	})
	if !f.copied && (errors.Is(err, kv.ErrNotExist) || errors.Is(err, kv.ErrRestoreUnfinished)) {
		return nil
	}
	return err
}

// begin makes the copy, unless there is one, and sets its position.
func (f *following) begin(ctx context.Context, db *kv.DB, slot *kv.Slot) error {
	own := f.at.Slot == slot.Name()
	f.at.Slot = slot.Name()
	switch {
	case !f.copied:
		return f.copy(ctx, db, slot)
	case own && f.at.History != f.source.history:
		return f.refused("%s has another history by now", f.From)
	case own && f.at.Write < slot.Position():
		return f.refused("it has the writes up to %d, and the slot goes on after %d", f.at.Write, slot.Position())
	case own:
		return nil
	}
	return f.adopt(ctx, db, slot)
}

func (f *following) refused(format string, args ...any) error {
	return fmt.Errorf("%s does not go on with slot %s of %s: %s; remove it, and run the command again", f.To, f.at.Slot,
		f.From, fmt.Sprintf(format, args...))
}

// copy copies the store as the view is.
func (f *following) copy(ctx context.Context, db *kv.DB, slot *kv.Slot) error {
	sent, err := (&copyCommand{From: f.From, To: f.To}).copy(ctx, f.p, db)
	if err != nil {
		return err
	}
	f.at.Adopted = f.From.remote() // a view of a log may have writes that are taken back
	return f.start(ctx, db, slot, uint64(sent.edit.LastSeq))
}

// start gives a copy its first position. It is acknowledged before the copy has it: if the command is killed between
// the two, the slot says what the copy is. The copy of an object store may have writes that are flushed only later.
func (f *following) start(ctx context.Context, db *kv.DB, slot *kv.Slot, last uint64) error {
	f.at.History, f.at.Write = f.source.history, last
	if f.From.remote() {
		if flushed := lastWrite(db, slot.Name()); flushed < last {
			f.p.note("%s has writes up to %d, and %s is flushed up to %d: waiting for its program to flush, with "+
				"DB.Flush or when a memtable is full", f.To, last, f.From, flushed)
		}
		if err := await(ctx, slot, last); err != nil {
			return err
		}
	}
	return cmp.Or(slot.Skip(last), slot.Ack(last))
}

// adopt gives a copy its position that has none yet, or that of the store that it is a copy of. Nothing has written to
// it: it was never opened, or its last write is the one that the slot has acknowledged. That proves no copy: follow
// compares it.
func (f *following) adopt(ctx context.Context, db *kv.DB, slot *kv.Slot) error {
	s, untouched, err := f.restored(ctx)
	if err == nil && !untouched {
		err = (&Dir{f.To}).read(ctx, f.p, func(db *kv.DB) error {
			mark, err := db.Backup(ctx, io.Discard, kv.BackupMark{}) // it knows what is in logs
			m := parse(mark)
			s.storeID, s.last = m.StoreID, uint64(m.LastSeq)
			return err
		})
	}
	if err != nil {
		return err
	}
	acked := slot.Position()
	if s.storeID != f.source.storeID || s.last != acked && (!untouched || s.last < acked) {
		return f.refused("it holds a store that is no copy of it as of write %d", acked)
	}
	f.at.Adopted = true
	return f.start(ctx, db, slot, s.last)
}

// restored returns what the manifest of the copy says, if the copy is as it was restored.
func (f *following) restored(ctx context.Context) (s source, untouched bool, err error) {
	if !f.To.remote() {
		state, err := manifest.Restore(vfs.OS, string(f.To))
		if err != nil || state.Done == 0 {
			return s, false, err
		}
		num, err := manifest.Current(vfs.OS, string(f.To))
		if err == nil {
			s, err = readSource(vfs.OS, string(f.To))
		}
		return s, num == state.Manifest, err
	}
	o, err := f.p.objects(ctx, f.To, false)
	if err != nil {
		return s, false, err
	}
	defer func() { _ = o.Store.Close() }() // it was read only
	directory, err := openDirectory(o)
	if err != nil {
		return s, false, err
	}
	state, err := backup.Published(directory, objectdir.Root)
	if err == nil && state.Done != 0 {
		s, err = readSource(directory, objectdir.Root)
	}
	return s, state.Done != 0, errors.Join(err, directory.Close())
}
