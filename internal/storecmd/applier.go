package storecmd

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/siftkv/siftkv/kv"
)

// An applier writes changes to a copy, each together with its position.
type applier struct {
	*kv.Batch
	ctx    context.Context
	db     *kv.DB
	at     position
	pieces bool // the change may be written in several batches
}

// maxPiece is the number of bytes of an ingest that are written at once.
const maxPiece = 16 << 20

// apply writes a change: one batch, except that an ingest may be several. If it breaks off, the same change is written
// again: an ingest has no operands, so that twice is as once.
func (a *applier) apply(change *kv.Change) error {
	a.Reset()
	a.pieces = change.Ingested()
	if err := change.Replay(a); err != nil {
		return err
	}
	return a.commit(change.Last())
}

// commit writes what there is, and that the copy has the writes up to one.
func (a *applier) commit(write uint64) error {
	at := a.at
	at.Write = write
	value, err := json.Marshal(at)
	if err != nil {
		return err
	}
	if err := errors.Join(a.Batch.Set([]byte(positionKey), value), a.CommitContext(a.ctx, kv.Async)); err != nil {
		return err
	}
	a.Reset()
	a.at = at
	return nil
}

// piece writes what there is of an ingest, if it is much: the position stays.
func (a *applier) piece() error {
	if !a.pieces || a.Size() < maxPiece {
		return nil
	}
	return a.commit(a.at.Write)
}

func (a *applier) Set(key, value []byte) error {
	return errors.Join(a.Batch.Set(key, value), a.piece())
}

func (a *applier) SetUntil(key, value []byte, expiry time.Time) error {
	return errors.Join(a.Batch.SetUntil(key, value, expiry), a.piece())
}

func (a *applier) Delete(key []byte) error { return errors.Join(a.Batch.Delete(key), a.piece()) }

// SetReader writes a value that no batch takes: it was a commit of its own, and twice is as once.
func (a *applier) SetReader(key []byte, size int64, r io.Reader) error {
	if size > kv.MaxValueSize {
		return a.db.SetReader(a.ctx, key, size, r, kv.Async)
	}
	value := make([]byte, size)
	if _, err := io.ReadFull(r, value); err != nil {
		return err
	}
	return a.Set(key, value)
}
