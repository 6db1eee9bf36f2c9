package kv

import (
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/manifest"
)

// A Writer is what a Batch and a Tx share: it collects writes that take effect together, with a Commit. It copies the
// slices that it is given. Batch.Replay and Change.Replay call one, which may be an application's own:
//
//	Set(key, value []byte) error
//	SetUntil(key, value []byte, expiry time.Time) error
//	Merge(key, operand []byte) error
//	Delete(key []byte) error
//	DeleteRange(lo, hi []byte) error
type Writer = batchrepr.Sink

var (
	_ Writer = (*Batch)(nil)
	_ Writer = (*Tx)(nil)
)

// Replay calls w for every write of the batch, in their order: SetUntil for those of SetTTL too, with the moment at
// which the value ends. So replaying into an empty batch makes a batch of the same writes. Replay stops at the first
// error of w, and returns it. A batch that has failed is not replayed: Replay returns its error.
//
// The slices that w gets are the batch's: they are valid during the call only, and w must not
// change them, nor reset the batch. W may be the batch itself, which then has each write twice.
// Replay does not change the batch, and allocates nothing.
func (b *Batch) Replay(w Writer) error {
	if b.err != nil || b.Len() == 0 {
		return b.err
	}
	r := b.repr.After(batchrepr.Mark{}, 0)
	for {
		e, ok, err := r.Next()
		if err != nil || !ok {
			return err
		}
		if err := batchrepr.Replay(w, e); err != nil {
			return err
		}
	}
}

// Append adds the writes of other after those of the batch, as Replay would, at the cost of copying their bytes. Other
// stays as it is, and may be the batch itself, or a batch of another store. The moments at which its values end do not
// change. Operands need a merger of this store that takes them, as those of Merge do.
//
// After an error nothing of other was added, and Commit returns the error as well: ErrTooLarge, ErrNoMerger, a
// *MergeError, or the error of a batch that has failed. A batch that was committed takes nothing before Reset
// (ErrBatchCommitted).
func (b *Batch) Append(other *Batch) error {
	switch {
	case b.committed:
		return ErrBatchCommitted
	case other.err != nil:
		return b.fail(other.err)
	case other.Len() == 0:
		return b.err
	}
	if other.repr.Features&manifest.FeatureMerge != 0 {
		if err := b.takesOperandsOf(other); err != nil {
			return b.fail(err)
		}
	}
	if size := b.repr.Arena + other.repr.Arena; size > MaxBatchSize {
		return b.fail(fmt.Errorf("%w: with %d writes more the batch takes %d bytes, the limit is %d", ErrTooLarge,
			other.Len(), size, MaxBatchSize))
	}
	b.repr.Arena += other.repr.Arena
	b.repr.Append(&other.repr.Writer)
	return b.err
}

// takesOperandsOf returns an error if the batch's store does not take the operands of another batch. A batch of the
// same store has been checked by Merge.
func (b *Batch) takesOperandsOf(other *Batch) error {
	if err := b.db.mergeable(); err != nil || b.db == other.db {
		return err
	}
	r := other.repr.After(batchrepr.Mark{}, 0)
	for {
		e, ok, err := r.Next()
		if err != nil || !ok {
			return err
		}
		if e.Key.Kind() != base.KindMerge {
			continue
		}
		if err := b.db.operands.Check(e.Key.User, e.Value); err != nil {
			return err
		}
	}
}
