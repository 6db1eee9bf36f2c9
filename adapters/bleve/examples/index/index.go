package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"

	"github.com/blevesearch/bleve/v2"

	"github.com/siftkv/siftkv/kv"
)

const slotName = "index"

// An index has the texts of a store by words. It has in itself, under progress, the number of the last change that it
// has. Bleve takes both in one batch, so each change is in it once, whatever crashes.
type index struct {
	bleve  bleve.Index
	slot   *kv.Slot
	writes uint64 // of the store that it has: a change that came twice would be counted twice
}

var progress = []byte("progress")

type document struct{ Text string }

// openIndex opens the index of a store, which is at path. What cannot be continued begins again with a snapshot: the
// index if it has no snapshot as a whole, and the slot if it is lost or not there.
func openIndex(ctx context.Context, db *kv.DB, path string) (*index, error) {
	x, err := resume(db, path)
	if err == nil {
		return x, nil
	}
	log.Print("the index is made from a snapshot: ", err)
	return begin(ctx, db, path)
}

func resume(db *kv.DB, path string) (*index, error) {
	b, err := bleve.Open(path)
	if err != nil {
		return nil, err
	}
	x := &index{bleve: b}
	var position uint64
	text, err := b.GetInternal(progress)
	if err == nil {
		_, err = fmt.Sscan(string(text), &position, &x.writes)
	}
	if err == nil {
		x.slot, err = db.OpenSlot(slotName)
	}
	if err == nil && position < x.slot.Position() {
		err = fmt.Errorf("the index is an older one: it has changes up to %d, and the slot begins after %d", position,
			x.slot.Position())
	}
	if err == nil {
		err = x.slot.Skip(position)
	}
	if err != nil { // without progress it is no index, even if a power cut undoes its removal
		return nil, errors.Join(err, b.DeleteInternal(progress), x.close())
	}
	return x, nil
}

func begin(ctx context.Context, db *kv.DB, path string) (x *index, err error) {
	if err := db.DropSlot(slotName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.RemoveAll(path); err != nil {
		return nil, err
	}
	slot, snapshot, err := db.CreateSlot(ctx, slotName)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, snapshot.Close()) }()
	b, err := bleve.New(path, bleve.NewIndexMapping())
	if err != nil {
		return nil, errors.Join(err, slot.Close())
	}
	x = &index{bleve: b, slot: slot}
	batch := b.NewBatch()
	var failed error
	for key, text := range snapshot.All(nil, &failed) {
		err = batch.Index(string(key), document{string(text)})
		if err == nil && batch.Size() == 1000 {
			err = b.Batch(batch)
			batch.Reset()
		}
		if err != nil {
			break
		}
	}
	if err = errors.Join(err, failed); err == nil { // the last batch says that the snapshot is there as a whole
		err = x.commit(batch, slot.Position(), slot.Position())
	}
	if err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

func (x *index) close() error {
	if x.slot != nil {
		_ = x.slot.Close() // it has no error
	}
	return x.bleve.Close()
}

// commit indexes a change, or the snapshot, with its last number and how many writes it had.
func (x *index) commit(batch *bleve.Batch, position, writes uint64) error {
	batch.SetInternal(progress, fmt.Append(nil, position, " ", x.writes+writes))
	if err := x.bleve.Batch(batch); err != nil {
		return err
	}
	x.writes += writes
	return nil
}

// follow indexes changes up to number last, and then returns. It waits for those that are to come.
func (x *index) follow(ctx context.Context, last uint64) error {
	if x.slot.Position() >= last {
		return nil
	}
	for change, err := range x.slot.Changes(ctx) {
		if err != nil {
			return err
		}
		w := writer{index: x.bleve, texts: map[string]*document{}}
		if err := change.Replay(&w); err != nil {
			return err
		}
		batch := x.bleve.NewBatch()
		for key, d := range w.texts {
			if d == nil {
				batch.Delete(key)
			} else if err := batch.Index(key, d); err != nil {
				return err
			}
		}
		if err := x.commit(batch, change.Last(), w.writes); err != nil {
			return err
		}
		if err := x.slot.Ack(change.Last()); err != nil {
			return err
		}
		if change.Last() >= last {
			return nil
		}
	}
	return nil
}
