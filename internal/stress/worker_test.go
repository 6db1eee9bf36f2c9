package stress

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"time"

	"github.com/siftkv/siftkv/kv"
)

// A worker does things to a store, one after the other.
type worker struct {
	r     *round
	id    int
	rng   *rand.Rand
	db    *kv.DB
	space *keyspace
	snaps []heldSnapshot
	iters []heldIterator
	reads []heldReader
	view  view

	backups [][]byte // each of what came since the one before
	mark    kv.BackupMark
}

const keysPerWorker = 60

func (w *worker) key() string {
	return fmt.Sprintf("%sk%03d", w.space.prefix, w.rng.IntN(keysPerWorker))
}

// value has the number of its operation in it.
func (w *worker) value(op *operation) string {
	n := w.rng.IntN(60)
	if w.rng.IntN(3) == 0 {
		n = w.rng.IntN(1 + w.r.mix.largest)
	}
	if w.r.mix.huge > 0 && w.rng.IntN(w.r.mix.huge) == 0 {
		n = w.rng.IntN(64 << 10)
	}
	return fmt.Sprintf("%d:%s", op.id, strings.Repeat(string(rune('a'+w.rng.IntN(26))), n))
}

func (w *worker) level() level {
	n := w.rng.IntN(100)
	switch {
	case n < w.r.mix.sync:
		return levelSync
	case n < w.r.mix.sync+w.r.mix.async:
		return levelAsync
	}
	return levelNoSync
}

func writeOptions(l level) *kv.WriteOptions {
	return []*kv.WriteOptions{kv.Sync, kv.NoSync, kv.Async}[l]
}

// run does so many things, or fewer if the store is gone. It returns a finding, if there
// is one.
func (w *worker) run(steps int) *Finding {
	defer w.release()
	for range steps {
		if w.r.over() {
			return nil
		}
		name, do := w.draw()
		w.r.watch.begin(w.id, name)
		f := do()
		w.r.watch.end(w.id)
		w.r.count(name)
		w.r.operationEnded()
		if f != nil {
			f.Text = fmt.Sprintf("worker %d, %s: %s", w.id, name, f.Text)
			return f
		}
		if w.r.quietAfterEach {
			w.r.rest()
		}
	}
	return nil
}

// draw chooses what to do next.
func (w *worker) draw() (name string, do func() *Finding) {
	total := 0
	for _, a := range w.r.mix.actions {
		total += a.weight
	}
	n := w.rng.IntN(total)
	for _, a := range w.r.mix.actions {
		if n -= a.weight; n < 0 {
			return a.name, func() *Finding { return a.do(w) }
		}
	}
	panic("unreachable")
}

// documented reports whether an error is one that the store may return here: of a fault
// that was injected, of the power that was cut, or of a context.
func documented(err error) bool {
	for _, allowed := range []error{syscall.EIO, syscall.ENOSPC, syscall.EMFILE, ErrGone, kv.ErrConflict,
		context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, allowed) {
			return true
		}
	}
	return isAny(err, objectErrors...)
}

// allow returns a finding if an error is none that the store may return.
func (w *worker) allow(err error) *Finding {
	if err == nil || w.r.overtaken(err) || documented(err) || w.r.closing.Load() && errors.Is(err, kv.ErrClosed) {
		return nil
	}
	if _, merging := errors.AsType[*kv.MergeError](err); merging && w.r.setup.panics {
		return nil
	}
	return found("undocumented error", "%v (%T)", err, err)
}

// settle notes how an operation ended.
func (w *worker) settle(op *operation, err error) *Finding {
	o := w.r.oracle
	switch {
	case err == nil:
		return o.acknowledged(w.space, op)
	case errors.Is(err, kv.ErrNotDurable): // readers see it: it is there unless the process or the machine ends
		op.level = levelAsync
		if f := o.acknowledged(w.space, op); f != nil {
			return f
		}
	case errors.Is(err, kv.ErrConflict), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		w.space.finish(op, refused, o.tick(), err)
	default:
		w.space.finish(op, failed, o.tick(), err)
	}
	return w.allow(err)
}

// attempt makes an operation known, commits it and notes the outcome.
func (w *worker) attempt(op *operation, commit func() error) *Finding {
	w.space.submit(op)
	return w.settle(op, commit())
}

func (w *worker) begin(name string, l level) *operation {
	return w.space.begin(name, l, w.r.oracle.tick())
}

// setOne writes the mark alone, without a batch.
func (w *worker) setOne() *Finding {
	op := w.begin("Set", w.level())
	op.writes[0].value += " " + w.value(op)
	return w.attempt(op, func() error {
		return w.db.Set([]byte(op.writes[0].key), []byte(op.writes[0].value), writeOptions(op.level))
	})
}

// mergeOne appends to the mark.
func (w *worker) mergeOne() *Finding {
	op := w.begin("Merge", w.level())
	op.writes[0].kind = writeMerge
	return w.attempt(op, func() error {
		return w.db.Merge([]byte(op.writes[0].key), []byte(op.writes[0].value), writeOptions(op.level))
	})
}

// batch commits a batch, a part of which may come from another.
func (w *worker) batch() *Finding {
	op := w.begin("Batch.Commit", w.level())
	b := w.db.NewBatch()
	err := w.fill(b, op, 8)
	if w.rng.IntN(4) == 0 {
		b, err = w.copied(b, op, err)
	}
	if err != nil {
		return found("undocumented error", "filling a batch: %v", err)
	}
	return w.attempt(op, func() error { return b.Commit(writeOptions(op.level)) })
}

// batchContext commits a batch with a context that ends at once, or soon.
func (w *worker) batchContext() *Finding {
	op := w.begin("Batch.CommitContext", w.level())
	b := w.db.NewBatch()
	if err := w.fill(b, op, 4); err != nil {
		return found("undocumented error", "filling a batch: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(w.rng.IntN(3000))*time.Microsecond)
	defer cancel()
	return w.attempt(op, func() error { return b.CommitContext(ctx, writeOptions(op.level)) })
}
