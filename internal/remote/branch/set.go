package branch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/sequence"
	"github.com/siftkv/siftkv/objstore"
)

// Options say which branch of a store is meant, or which checkpoint of it.
type Options struct {
	Objects objstore.Store

	// Branch is the name of a branch; empty: the main one. Checkpoint is that of one of its checkpoints; empty: the
	// branch as it is.
	Branch, Checkpoint string

	// Patience is how long the pauses between tries of a request may be together. Default: 1 minute.
	Patience time.Duration

	Grace time.Duration // how long readers may use objects that the store no longer needs
}

// Grace returns how long readers may use what the store no longer needs, by a public setting: 10 minutes by default,
// none if negative.
func Grace(setting time.Duration) time.Duration {
	return max(cmp.Or(setting, 10*time.Minute), 0)
}

// A Set is all branches of a store, which are in one object store.
type Set struct {
	store    objstore.Store
	patience time.Duration
	wait     func(ctx context.Context, tries int) bool // before the next try; false if ctx has ended
}

// NewSet returns the branches of the store that o says. It sends no request.
func NewSet(o Options) *Set {
	patience := cmp.Or(o.Patience, time.Minute)
	return &Set{store: o.Objects, patience: patience, wait: sequence.Options{Patience: patience}.Pause}
}

// Sequence returns the entries of a branch. The number of the store may be 0, if it is not known.
func (f *Set) Sequence(at filelist.BranchPrefix, store uint64) *sequence.Sequence {
	s := sequence.New(f.store, at.Objects()+"entry/", sequence.Options{Patience: f.patience})
	s.Adopt(store)
	return s
}

// put puts an object under a key that no other caller uses. An error matches objstore.ErrUnknown unless the object is
// not there and never will be.
func (f *Set) put(ctx context.Context, key string, object []byte) error {
	var unknown error
	for tries := 0; ; tries++ {
		err := f.store.PutIfAbsent(ctx, key, object)
		if err == nil {
			return nil
		}
		if errors.Is(err, objstore.ErrExists) {
			held, failed := f.get(ctx, key, len(object))
			if failed == nil && bytes.Equal(held, object) {
				return nil
			}
			if failed == nil {
				return fmt.Errorf("siftkv: put %s: %w", key, err)
			}
			err = fmt.Errorf("%w: %w", objstore.ErrUnknown, failed)
		}
		if errors.Is(err, objstore.ErrUnknown) {
			unknown = err
		}
		again := errors.Is(err, objstore.ErrUnknown) || errors.Is(err, objstore.ErrThrottled)
		if !again || !f.wait(ctx, tries) {
			if unknown != nil && !errors.Is(err, objstore.ErrUnknown) {
				err = fmt.Errorf("%w: %w", objstore.ErrUnknown, err)
			}
			return fmt.Errorf("siftkv: put %s: %w", key, errors.Join(err, ctx.Err()))
		}
	}
}

// get returns an object. With a hint that is not too small it is one request.
func (f *Set) get(ctx context.Context, key string, hint int) ([]byte, error) {
	for tries := 0; ; tries++ {
		b, err := objstore.ReadAll(ctx, f.store, key, hint)
		if err == nil || !sequence.Transient(err) || tries == sequence.ReadTries-1 || !f.wait(ctx, tries) {
			return b, err
		}
	}
}

// getStart returns the first n bytes of an object, or all if it has fewer.
func (f *Set) getStart(ctx context.Context, key string, n int) ([]byte, error) {
	b := make([]byte, n)
	for tries := 0; ; tries++ {
		got, err := f.store.GetRange(ctx, key, 0, b)
		if err == nil || errors.Is(err, io.EOF) && got > 0 {
			return b[:got], nil
		}
		if !sequence.Transient(err) || tries == sequence.ReadTries-1 || !f.wait(ctx, tries) {
			return nil, err
		}
	}
}

// remove deletes an object, if there is one.
func (f *Set) remove(ctx context.Context, key string) error {
	for tries := 0; ; tries++ {
		err := f.store.Delete(ctx, key)
		again := errors.Is(err, objstore.ErrUnknown) || errors.Is(err, objstore.ErrThrottled)
		if err == nil || !again || tries == sequence.ReadTries-1 || !f.wait(ctx, tries) {
			return err
		}
	}
}

// twice calls do, and once more if what it read was damaged, which the transport may have done.
func twice(do func() error) error {
	err := do()
	if errors.Is(err, base.ErrCorruption) {
		err = do()
	}
	return err
}
