package stress

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
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

// A writer is a batch or a transaction.
type writer interface {
	Set(key, value []byte) error
	Delete(key []byte) error
	DeleteRange(lo, hi []byte) error
}

// fill writes the mark and some of the worker's keys.
func (w *worker) fill(b writer, op *operation, most int) error {
	m := op.writes[0]
	errs := []error{b.Set([]byte(m.key), []byte(m.value))}
	batch, _ := b.(*kv.Batch)
	if w.r.want["rangedel"] && w.rng.IntN(64) == 0 {
		errs = append(errs, w.smallRanges(b, op))
	}
	for range w.rng.IntN(most + 1) {
		k := w.key()
		n := write{key: k}
		var err error
		switch x := w.rng.IntN(20); {
		case x < 3:
			n.kind = writeDelete
			err = b.Delete([]byte(k))
		case x < 4 && w.r.want["rangedel"]:
			n.kind, n.value = writeRange, fmt.Sprintf("%sk%03d", w.space.prefix, w.rng.IntN(keysPerWorker+1))
			if n.value <= n.key {
				n.value = n.key + "\x00"
			}
			err = b.DeleteRange([]byte(k), []byte(n.value))
		case x < 7 && w.r.want["merge"] && batch != nil:
			n.kind, n.value = writeMerge, strconv.FormatUint(op.id, 10)
			err = batch.Merge([]byte(k), []byte(n.value))
		case x < 9 && w.r.want["ttl"] && batch != nil:
			n.kind, n.value = writeTTL, w.value(op)
			err = w.setTTL(batch, &n)
		default:
			n.value = w.value(op)
			err = b.Set([]byte(k), []byte(n.value))
		}
		op.writes = append(op.writes, n)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// smallRanges deletes many ranges, of a key or a few each.
func (w *worker) smallRanges(b writer, op *operation) error {
	var errs []error
	for range 5 + w.rng.IntN(60) {
		lo := w.rng.IntN(keysPerWorker)
		n := write{kind: writeRange, key: fmt.Sprintf("%sk%03d", w.space.prefix, lo)}
		n.value = fmt.Sprintf("%sk%03d", w.space.prefix, lo+1+w.rng.IntN(3)/2)
		op.writes = append(op.writes, n)
		errs = append(errs, b.DeleteRange([]byte(n.key), []byte(n.value)))
	}
	return errors.Join(errs...)
}

// setTTL puts a value that expires into a batch, while the clock stands still.
func (w *worker) setTTL(b *kv.Batch, n *write) error {
	c := w.r.oracle.clock
	c.hold.RLock()
	defer c.hold.RUnlock()
	ttl := time.Duration(1+w.rng.IntN(120)) * time.Second
	n.expiry = c.now() + uint64(ttl.Microseconds())
	return b.SetTTL([]byte(n.key), []byte(n.value), ttl)
}

// batch commits a batch.
func (w *worker) batch() *Finding {
	op := w.begin("Batch.Commit", w.level())
	b := w.db.NewBatch()
	if err := w.fill(b, op, 8); err != nil {
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
